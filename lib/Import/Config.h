//===- Config.h - A config's keys with their family's defaults -*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_CONFIG_H
#define SHARDC_LIB_IMPORT_CONFIG_H

#include "shardc/Import/Import.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace shardc::import {

/// The keys of a config. A key that is missing has the family's default; one
/// that is null has no value. Errors collect in `errors`.
class Config {
public:
  /// `object` lies in `text` behind byte `start`.
  Config(llvm::StringRef text, size_t start, const llvm::json::Object &object,
         const llvm::json::Object &defaults)
      : text(text), start(start), object(object), defaults(defaults) {}

  /// Null if the key has no value.
  const llvm::json::Value *find(llvm::StringRef key);
  /// A whole number from `least` to 2^40; without a value an error, and 1.
  int64_t integer(llvm::StringRef key, int64_t least = 1);
  std::optional<int64_t> optionalInteger(llvm::StringRef key,
                                         int64_t least = 1);
  /// Finite and above 0, or `none`.
  double real(llvm::StringRef key, double none);
  bool boolean(llvm::StringRef key, bool none = false);
  std::string string(llvm::StringRef key, llvm::StringRef none = "");

  void error(llvm::StringRef key, const llvm::Twine &message);
  /// The byte at which the key stands, or the object.
  size_t offsetOf(llvm::StringRef key) const;
  /// Keys that nobody asked for and that change no plan's cost are left out.
  std::vector<ConfigMessage> unknownKeys() const;

  std::vector<ConfigMessage> errors;

private:
  std::optional<int64_t> wholeNumber(llvm::StringRef key,
                                     const llvm::json::Value &value,
                                     int64_t least);

  llvm::StringRef text;
  size_t start;
  const llvm::json::Object &object, &defaults;
  llvm::StringSet<> asked;
};

} // namespace shardc::import

#endif // SHARDC_LIB_IMPORT_CONFIG_H
