//===- File.cpp - A file's bytes, inflated where they are gzip's ----------===//

#include "shardc/Contest/Read.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/MemoryBuffer.h"
#include <fmt/format.h>
#include <zlib.h>

namespace shardc::contest {

/// Problems of more bytes than this would not fit in memory once read.
static constexpr size_t kMaxBytes = size_t(2) << 30;

namespace {
/// zlib's stream, ended when it goes out of scope.
class Inflater {
public:
  Inflater() { ready = inflateInit2(&stream, 15 + 16) == Z_OK; }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater &) = delete;
  Inflater &operator=(const Inflater &) = delete;

  /// All members of the gzip file; `error` says what is wrong with it.
  std::optional<std::string> run(llvm::StringRef bytes, std::string &error) {
    std::string text;
    if (!ready)
      return fail(error, "zlib could not start");
    text.resize(std::min(kMaxBytes, bytes.size() * 8 + 4096));
    size_t used = 0;
    stream.next_in =
        reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
    size_t left = bytes.size();
    for (int status = Z_OK;;) {
      if (used == text.size()) {
        if (used == kMaxBytes)
          return fail(error, fmt::format("the inflated file is too large: "
                                         "expected at most {} bytes",
                                         kMaxBytes));
        text.resize(std::min(kMaxBytes, used * 2));
      }
      size_t room = std::min<size_t>(text.size() - used, 1u << 30);
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, 1u << 30));
      size_t offered = stream.avail_in;
      stream.avail_out = static_cast<uInt>(room);
      stream.next_out = reinterpret_cast<Bytef *>(text.data() + used);
      status = inflate(&stream, Z_NO_FLUSH);
      left -= offered - stream.avail_in;
      used += room - stream.avail_out;
      if (status == Z_STREAM_END) {
        if (left == 0)
          break;
        if (inflateReset(&stream) != Z_OK)
          return fail(error, "zlib could not start again");
        continue;
      }
      if (status == Z_BUF_ERROR ||
          (status == Z_OK && left == 0 && stream.avail_out != 0))
        return fail(error, "the gzip data is truncated");
      if (status != Z_OK)
        return fail(error, fmt::format("the gzip data is damaged: {}",
                                       stream.msg ? stream.msg : "no message"));
    }
    text.resize(used);
    return text;
  }

private:
  static std::nullopt_t fail(std::string &error, std::string text) {
    error = std::move(text);
    return std::nullopt;
  }

  z_stream stream = {};
  bool ready = false;
};
} // namespace

std::optional<std::string> loadFile(const std::string &path,
                                    std::string &error) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot be read: " + buffer.getError().message();
    return std::nullopt;
  }
  llvm::StringRef bytes = (*buffer)->getBuffer();
  if (bytes.starts_with("\x1f\x8b"))
    return Inflater().run(bytes, error);
  if (llvm::StringRef(path).ends_with(".gz")) {
    error = "is not a gzip file: expected its first bytes to be 1f 8b";
    return std::nullopt;
  }
  if (bytes.size() > kMaxBytes) {
    error = fmt::format("is too large: expected at most {} bytes, found {}",
                        kMaxBytes, bytes.size());
    return std::nullopt;
  }
  return bytes.str();
}

} // namespace shardc::contest
