//===- BatchChoice.h - The batch that `batch = auto` chooses ---*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_BATCHCHOICE_H
#define SHARDC_QUESTIONS_BATCHCHOICE_H

#include "shardc/Questions/MeshChoice.h"

namespace shardc {

struct BatchChoice {
  /// The extent of the batch's dim.
  Setting setting;
  Report::BatchSearch search;
};

/// Plans the program with `settings` in batches of several sizes and takes the
/// largest one that fits, or else the least one that is legal. `probe` is the
/// program, imported with the settings, which has `batch = auto`. Nothing if no
/// batch is legal or all fit, for the reason in `error`.
std::optional<BatchChoice> chooseBatch(const ProgramText &text,
                                       llvm::ArrayRef<Setting> settings,
                                       const Program &probe,
                                       const MeshChoiceOptions &options,
                                       std::string &error);

} // namespace shardc

#endif // SHARDC_QUESTIONS_BATCHCHOICE_H
