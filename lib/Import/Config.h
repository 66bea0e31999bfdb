//===- Config.h - A config's keys with their family's defaults -*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_CONFIG_H
#define SHARDC_LIB_IMPORT_CONFIG_H

#include "shardc/Import/Import.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace shardc::import {

/// A message in printable ASCII, of bounded length: it may quote the config.
ConfigMessage messageAt(const llvm::Twine &text, size_t offset);

/// One line of printable ASCII.
std::string printable(llvm::StringRef text, size_t most);

/// The keys of a config. A key that is missing has the family's default; one
/// that is null has no value. Errors collect in `errors`.
class Config {
public:
  /// `object` lies in `text` behind byte `start`.
  Config(llvm::StringRef text, size_t start, const llvm::json::Object &object,
         const llvm::json::Object &defaults);

  /// Null if the key has no value.
  const llvm::json::Value *find(llvm::StringRef key);
  /// A whole number in the range; without a value an error, and 1.
  int64_t integer(llvm::StringRef key, int64_t least = 1, int64_t most = kMost);
  std::optional<int64_t> optionalInteger(llvm::StringRef key,
                                         int64_t least = 1);
  /// The whole numbers of a list, all in the range; without a value none.
  std::vector<int64_t> integers(llvm::StringRef key, int64_t least,
                                int64_t most);
  /// Finite and above 0, or `none`.
  double real(llvm::StringRef key, double none);
  bool boolean(llvm::StringRef key, bool none = false);
  std::string string(llvm::StringRef key, llvm::StringRef none = "");
  /// Null if the key has no value; of anything else than an object an error.
  const llvm::json::Object *fields(llvm::StringRef key);
  /// Reads the object of a key, if it has one, as a config of its own without
  /// defaults. Its errors are errors of this config, at the keys inside.
  void inside(llvm::StringRef key, llvm::function_ref<void(Config &)> read);

  bool hasErrors() const { return !errors.empty(); }
  void error(llvm::StringRef key, const llvm::Twine &message);
  /// The byte at which the key stands, or the object.
  size_t offsetOf(llvm::StringRef key) const;
  /// Keys that are neither asked for nor ignored, in the order of the text.
  std::vector<llvm::StringRef> unknownKeys() const;
  /// One for each of them; of many keys for the first.
  std::vector<ConfigMessage> unknownKeyWarnings() const;
  /// How many keys of the text were asked for and are not ignored.
  size_t countKnownKeys() const;

  std::vector<ConfigMessage> errors;
  /// Keys without a value that `integer` asked for.
  std::vector<std::string> missing;

private:
  std::optional<int64_t> wholeNumber(llvm::StringRef key,
                                     const llvm::json::Value &value,
                                     int64_t least, int64_t most);

  /// The largest number that is read.
  static constexpr int64_t kMost = int64_t(1) << 40;
  llvm::StringRef text;
  size_t start;
  /// The bytes at which keys stand.
  llvm::StringMap<size_t> offsets;
  const llvm::json::Object &object, &defaults;
  llvm::StringSet<> asked;
};

} // namespace shardc::import

#endif // SHARDC_LIB_IMPORT_CONFIG_H
