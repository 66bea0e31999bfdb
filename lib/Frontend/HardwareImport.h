//===- HardwareImport.h - The hardware declaration -------------*- C++ -*-===//
//
// From `hardware tpu_v5e[4, 4] { ... }` to a machine: units, the catalogue, and
// errors of lib/Machine where they belong in the source.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_HARDWAREIMPORT_H
#define SHARDC_LIB_FRONTEND_HARDWAREIMPORT_H

#include "Source.h"
#include "shardc/Frontend/Ast.h"
#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc {

/// The machine that a declaration describes, without a shape: a catalogue
/// entry, one with fields overridden, or (with `catalogued` null) a new
/// machine. Reports errors.
std::optional<Machine> importMachine(SourceFiles &files,
                                     const ast::HardwareDecl &decl,
                                     const Machine *catalogued);

/// The same looked up in the catalogue, with its shape: one chip where none is
/// written. `evaluate` gives the extents and reports what has none.
std::optional<Machine> importHardware(
    SourceFiles &files, const ast::HardwareDecl &decl,
    llvm::function_ref<std::optional<int64_t>(const ast::DimExpr &)> evaluate);

/// Turns the machine's calibration on, with figures that it borrows; false
/// after an error at `where`, if there are none.
bool calibrateHardware(SourceFiles &files, llvm::SMRange where,
                       Machine &machine);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_HARDWAREIMPORT_H
