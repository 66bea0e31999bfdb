s/^input \([a-z]*\): *int32\[B/&@X/
s/^\( *weight W[a-z]*: *[a-z0-9]*\[E\),/\1@X,/
