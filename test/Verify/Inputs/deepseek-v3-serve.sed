s/B = 2048 /B = 40 /; s/S = 4096 /S = 64 /; s/V = 129_280/V = 64/; s/L1 = 3, L = 58/L1 = 1, L = 2/
s/D = 7168/D = 32/; s/F1 = 18_432/F1 = 48/; s/N = 128/N = 8/; s/Rq = 1536, R = 512/Rq = 24, R = 16/
s/A1 = 128, A2 = 64/A1 = 8, A2 = 4/; s/U = 128/U = 8/; s/E = 256, F = 2048/E = 8, F = 12/; s/Fs = 2048/Fs = 12/
s/dim Q = 8/dim Q = 4/; s/min(B, 32)/min(B, 2)/; s/min(T, 32)/min(T, 4)/; s/ceildiv(8 /ceildiv(2 /
s/k=8/k=2/g; s/blocks=8, limit=4/blocks=4, limit=2/g; s/best, k=4/best, k=2/; s/0..512/0..16/
s/prompt = 3072  generate = 1024/prompt = 48  generate = 16/
