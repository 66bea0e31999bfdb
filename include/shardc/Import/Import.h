//===- Import.h - Programs from configs of checkpoints --------*- C++ -*-===//
//
// Reads the `config.json` of a Hugging Face checkpoint and writes the model as
// the text of a program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_IMPORT_IMPORT_H
#define SHARDC_IMPORT_IMPORT_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc::import {

enum class Task { Forward, Train, Decode, Serve };

/// How the model is used.
struct ImportOptions {
  Task task = Task::Train;
  /// Sequences of a step.
  int64_t batch = 256;
  /// Tokens of a sequence; the positions of the cache when decoding. Without,
  /// 4096, or as many as the model has positions for.
  std::optional<int64_t> sequence;
  /// Those of `sequence` that a served request generates; without, an eighth.
  std::optional<int64_t> generate;
  /// A declaration as in `hardware h100[8]`; empty: the program has none.
  std::string hardware;
  /// Names the config in the first comment.
  std::string file;
};

/// A message about the byte of the config at `offset`, with notes about it.
struct ConfigMessage {
  std::string text;
  size_t offset = 0;
  std::vector<std::string> notes;
};

/// The text of a program, or the errors why there is none; and the keys that
/// no block knows.
struct ImportResult {
  std::optional<std::string> program;
  std::vector<ConfigMessage> errors, warnings;
};

ImportResult importConfig(llvm::StringRef json, const ImportOptions &options);

} // namespace shardc::import

#endif // SHARDC_IMPORT_IMPORT_H
