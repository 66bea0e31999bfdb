//===- ExportedProgram.h - Tables and functions of one plan -----*- C++ -*-===//
//
// Private to lib/Export/Jax: a plan and its unsharded program in an exported
// file, which may have several.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_EXPORT_JAX_EXPORTEDPROGRAM_H
#define SHARDC_LIB_EXPORT_JAX_EXPORTEDPROGRAM_H

#include "Function.h"
#include "mlir/IR/BuiltinOps.h"
#include "shardc/Schedule/PipelineShape.h"

namespace shardc::jax {

class ExportedProgram {
public:
  /// Names of tables begin with `prefix`; `forward` is null but for a training
  /// step.
  ExportedProgram(PythonFile &file, llvm::StringRef prefix,
                  shd::ProgramOp unplanned, shd::ProgramOp planned,
                  shd::ProgramOp forward = {},
                  const StagePlan *stages = nullptr);

  /// Reports plans that JAX cannot express.
  llvm::LogicalResult check();
  /// Makes the small form of both programs.
  llvm::LogicalResult shrink();
  /// The unsharded program; of one that is trained, the whole step.
  shd::ProgramOp whole() const { return global.full; }
  /// Copies of both programs, to be shrunk alike before `convert`.
  shd::ProgramOp smallWhole() const { return global.small; }
  shd::ProgramOp smallPlan() const;
  /// Turns the plan, and its small form, into the program of a device.
  llvm::LogicalResult convert();
  void nameParameters();

  /// Prints the function of each device, then that of the unsharded program: of
  /// a training step the one that it was made of, if that is known.
  llvm::LogicalResult printFunctions(llvm::raw_ostream &os,
                                     llvm::StringRef device,
                                     llvm::StringRef whole);
  /// `TENSORS`: the table of inputs, weights and states.
  std::string tensors();
  /// `SPECS`, `OUTPUTS`, `PARTIAL`, `STATES` and, once the functions are
  /// printed, `LAYOUTS`.
  std::string specs(llvm::StringRef whole);
  /// The names of weights and states in the memory of the host, quoted.
  llvm::SmallVector<std::string> onHost();
  /// `ORDERS` and `OUTPUT_ORDERS`: what is stored in zigzag order.
  std::string orders();
  bool hasOrders();
  /// `HELD`: the layers of each stage's chunks; empty if all have as many.
  std::string layersTable() const;
  /// `{"X": 4 if FULL else 2}`: the mesh in both forms.
  std::string mesh() const;
  /// `X = 4, Y = 4`, or `one device`.
  std::string meshWords() const;

  /// Parameters of the unsharded program, and outputs of a device's.
  llvm::SmallVector<Parameter> parameters();
  llvm::SmallVector<spmd::OutputOp> outputs();

private:
  /// A program in a module of its own, and its small form.
  template <typename Program> struct Forms {
    mlir::OwningOpRef<mlir::ModuleOp> module, smallModule;
    Program full, small;
  };

  template <typename Program>
  static void isolate(Forms<Program> &forms, Program program);
  /// The file speaks of this program's mesh from here on.
  void enter() { file.mesh = axes; }
  std::string table(llvm::StringRef name) const {
    return (prefix + name).str();
  }
  llvm::LogicalResult checkDivisible();
  llvm::LogicalResult checkStages();
  void findBounds();
  void noteLayout(const FunctionPrinter &printer, mlir::Value value,
                  mlir::Value placed);
  void findLayouts(const FunctionPrinter &printer);
  void findForwardLayouts(const FunctionPrinter &printer);
  std::string orderOf(mlir::Operation *op,
                      llvm::ArrayRef<llvm::StringRef> indices,
                      llvm::ArrayRef<int64_t> extents,
                      llvm::ArrayRef<int64_t> smallExtents);
  std::optional<unsigned> layersDimOf(mlir::Operation *op);
  std::string specOf(const Parameter &parameter);
  /// Entries of the tables of orders.
  std::pair<std::string, std::string> orderEntries();

  PythonFile &file;
  llvm::StringRef prefix;
  shd::ProgramOp unplanned, planned;
  /// Null without a pipeline.
  const StagePlan *stages;
  PipelineShape smallShape;
  Mesh axes, smallAxes;
  Forms<shd::ProgramOp> global;
  /// The program that a training step was made of; null if there is none.
  Forms<shd::ProgramOp> forward;
  Forms<spmd::ProgramOp> device;
  /// The index whose positions an integer input holds: a key of the table of
  /// sizes.
  llvm::StringMap<std::string> bounds;
  /// The layout of each named value of the unsharded program.
  llvm::SmallVector<std::pair<std::string, std::string>> layouts;
};

} // namespace shardc::jax

#endif // SHARDC_LIB_EXPORT_JAX_EXPORTEDPROGRAM_H
