//===- StepNames.h - Names of a training step's operations -----*- C++ -*-===//
//
// A step has operations that the program's text does not name: those of the
// backward pass, of the update, and intermediate results. Each gets a name of
// its own here, by which a plan's text says how it runs
// (docs/CommandLine.md#plans-of-training-steps).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_STEPNAMES_H
#define SHARDC_OPTIMIZER_STEPNAMES_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// Declared tensors have their names, and other operations that of their first
/// result: `h.grad`, the next one `h.grad.2`. An output `y` is `y.output`,
/// the write into a declared tensor `c` is `c.stored`, and a repeat `L` has the
/// name of its index, what its iterations hand on `L.next`. Copies have none.
class StepNames {
public:
  explicit StepNames(shd::ProgramOp program);

  /// The name, or nothing.
  llvm::StringRef nameOf(mlir::Operation *op) const {
    auto it = names.find(op);
    return it == names.end() ? llvm::StringRef() : it->second;
  }
  /// The name of what made a value; of one that a repeat carries, as reports
  /// call it.
  std::string nameOf(mlir::Value value) const;
  mlir::Operation *find(llvm::StringRef name) const {
    return operations.lookup(name);
  }
  /// `base`, or with the next free number behind.
  std::string take(llvm::StringRef base, mlir::Operation *op = nullptr);
  /// In program order.
  const llvm::MapVector<mlir::Operation *, std::string> &all() const {
    return names;
  }

private:
  llvm::MapVector<mlir::Operation *, std::string> names;
  llvm::StringMap<mlir::Operation *> operations;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_STEPNAMES_H
