//===- OutputFile.cpp - Output that is complete or absent ------*- C++ -*-===//

#include "OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static Error cannotWrite(StringRef path, std::error_code why) {
  return createStringError(why,
                           "cannot write '" + path + "': " + why.message());
}

/// Writes to what cannot be replaced: standard output, pipes, devices.
static Error writeThrough(raw_fd_ostream &os, StringRef path, StringRef text) {
  os << text;
  os.flush();
  if (!os.has_error())
    return Error::success();
  std::error_code why = os.error();
  os.clear_error();
  return cannotWrite(path, why);
}

static Error writeSpecialFile(StringRef path, StringRef text) {
  std::error_code why;
  raw_fd_ostream os(path, why);
  if (why)
    return cannotWrite(path, why);
  return writeThrough(os, path, text);
}

static Error replaceFile(StringRef path, StringRef text) {
  Expected<sys::fs::TempFile> file =
      sys::fs::TempFile::create(path + ".tmp%%%%%%");
  if (!file)
    return cannotWrite(path, errorToErrorCode(file.takeError()));
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if (Error error = writeThrough(os, path, text))
    return joinErrors(std::move(error), file->discard());
  if (Error error = file->keep(path))
    return cannotWrite(path, errorToErrorCode(std::move(error)));
  return Error::success();
}

Error shardc::writeOutput(StringRef path, StringRef text) {
  if (path == "-")
    return writeThrough(outs(), "standard output", text);
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && sys::fs::exists(status) &&
      !sys::fs::is_regular_file(status))
    return writeSpecialFile(path, text);
  return replaceFile(path, text);
}
