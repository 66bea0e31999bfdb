# cmake -DOUTPUT=... -DFILES="a.shd;b.shd" -P EmbedCatalogue.cmake
# Writes the hardware files as rows of a C++ table: name, text.

set(rows "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND rows "{\"${name}\", R\"shd(${text})shd\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
