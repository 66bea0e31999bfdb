//===- SweepCells.h - Points of sweeps in CSV and JSON ---------*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_SWEEPCELLS_H
#define SHARDC_LIB_QUESTIONS_SWEEPCELLS_H

#include "shardc/Questions/Questions.h"
#include <nlohmann/json.hpp>

namespace shardc {

/// The grid of all `--sweep` flags; nothing after an error, which is emitted.
std::optional<Grid> readGrid(const Questions &questions,
                             const ProgramText &program,
                             mlir::MLIRContext *context);

/// A cell as RFC 4180 writes it.
std::string csvCell(llvm::StringRef text);
/// What a point sets, by name.
nlohmann::ordered_json setOf(const Point &point);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_SWEEPCELLS_H
