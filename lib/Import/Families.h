//===- Families.h - Families of checkpoints as building blocks -*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_FAMILIES_H
#define SHARDC_LIB_IMPORT_FAMILIES_H

#include "Config.h"
#include "Model.h"

namespace shardc::import {

/// The model of a parsed config; after an error, in `config.errors`, it is not
/// to be used. `Task` decides how quantised weights are stored.
Model readModel(Config &config, llvm::StringRef family, Task task);

/// The defaults of a family's keys; none: the family is not known.
std::optional<llvm::json::Object> familyDefaults(llvm::StringRef family);

/// The names of the families that are read.
std::vector<llvm::StringRef> familyNames();

/// The text of the program, of options that all have values; none: its
/// parameters cannot be counted in 64 bits.
std::optional<std::string> writeProgram(const Model &model,
                                        const ImportOptions &options);

} // namespace shardc::import

#endif // SHARDC_LIB_IMPORT_FAMILIES_H
