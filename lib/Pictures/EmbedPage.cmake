# cmake -DOUTPUT=... -DFILE=Page.html -P EmbedPage.cmake
# Writes the page's template as C++ string literals, none of them too long for a
# compiler.

file(READ ${FILE} text)
string(LENGTH "${text}" length)
set(literals "")
set(begin 0)
while(begin LESS length)
  string(SUBSTRING "${text}" ${begin} 8000 part)
  string(APPEND literals "R\"shd(${part})shd\"\n")
  math(EXPR begin "${begin} + 8000")
endwhile()
file(WRITE ${OUTPUT} "${literals}")
