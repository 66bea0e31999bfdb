//===- PlanPrinter.h - Writes a plan into the program's text ---*- C++ -*-===//
//
// Private to the plan text: see PlanText.cpp (statements that keep their text,
// declarations, layers) and PlanSplit.cpp (statements that are taken apart).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PLANTEXT_PLANPRINTER_H
#define SHARDC_LIB_PLANTEXT_PLANPRINTER_H

#include "PlanCopies.h"
#include "PlanEdits.h"
#include "PlanExpr.h"
#include "PlanModel.h"
#include "shardc/PlanText/PlanText.h"

namespace shardc {

class PlanPrinter {
public:
  PlanPrinter(const Program &program, llvm::SourceMgr &sourceMgr,
              shd::ProgramOp planned, const Overrides &overrides,
              const ExplicitOps &explicitOps);

  std::string print();

private:
  /// The plan's annotation of one reference in the text.
  struct Request {
    shd::ShardingAttr pin;
    /// The copy to read instead, or null.
    mlir::Operation *copy = nullptr;
    mlir::OpOperand *use = nullptr;
    /// False if something else has been said of the reference.
    bool add(shd::ShardingAttr otherPin, mlir::Operation *otherCopy);
  };
  /// By the place of the reference.
  using Requests = std::map<const char *, Request>;

  /// A layer with the plan of some of its calls: the declaration's text around
  /// its name.
  struct Variant {
    std::string name, head, tail;
  };

  std::string printFile(size_t index);
  void printItems(PlanFrame *frame, const std::vector<ast::ItemPtr> &items,
                  TextEdits &edits);
  void printTensor(PlanFrame *frame, const ast::TensorDecl &tensor,
                   TextEdits &edits);
  void printOutput(const ast::OutputDecl &decl, TextEdits &edits);
  void printRepeat(PlanFrame *frame, const ast::RepeatStmt &repeat,
                   TextEdits &edits);
  void printEnd(PlanFrame *frame, const ast::Item *body, llvm::SMRange range,
                TextEdits &edits);
  void printImport(const ast::ImportDecl &import, TextEdits &edits);
  void printHardware(const ast::Item &item, TextEdits &edits);
  void printMesh(const ast::MeshDecl &mesh, TextEdits &edits);
  void printDims(const ast::DimDecl &dims, TextEdits &edits);
  void addDeclarations(llvm::SMLoc loc, TextEdits &edits);
  std::string meshText();

  std::string variantName(PlanFrame *frame);
  void addParameters(PlanFrame *frame, TextEdits &edits);
  void printLayers(TextEdits &edits);

  void printStatement(PlanStatement &statement, TextEdits &edits);
  std::pair<shd::ShardingAttr, mlir::Operation *> wanted(mlir::OpOperand &use);
  bool movesFreely(mlir::OpOperand &use, shd::ShardingAttr pin) const;
  bool collect(llvm::ArrayRef<mlir::Operation *> ops, Requests &requests);
  bool mayStandTogether(const ast::Expr &root, const Requests &requests);
  void editReferences(PlanFrame *frame, const Requests &requests,
                      TextEdits &edits);
  void editTarget(PlanFrame *frame, const ast::Target &target,
                  TextEdits &edits);
  void editArgument(PlanFrame *callee, const ast::Expr &argument,
                    mlir::OpOperand &use, TextEdits &edits);
  void editCall(PlanFrame *callee, TextEdits &edits);
  void insertBefore(TextEdits &edits, llvm::SMLoc loc,
                    llvm::ArrayRef<std::string> lines);
  std::vector<std::string> copiesBefore(PlanFrame *frame,
                                        const ast::Item *item);
  /// `target[to] = source[...]`, where the source has the layout `from`.
  struct Move {
    std::string target, source;
    std::vector<std::string> indices;
    mlir::Type type;
    shd::ShardingAttr from, to;
  };
  std::string moveStatement(const Move &move);
  std::string copyStatement(const PlanCopy &copy, const FrameValue &source);
  std::string rebindingStatement(PlanFrame *frame,
                                 const PlanRebinding &rebinding);

  /// The step of a program that is trained or runs in stages: operations that
  /// no statement places stand in lines of their own, and copies, too.
  bool isStep() { return planned.getTraining() || planned.getPipeline(); }
  void printStages(const ast::RepeatStmt &repeat, TextEdits &edits);
  void printTrain(TextEdits &edits);
  void printLayouts(const std::vector<ast::ItemPtr> &items, TextEdits &edits);
  void setTrainField(llvm::StringRef name, llvm::StringRef value,
                     TextEdits &edits);
  void setTrainFields(TextEdits &edits);
  /// How operations run that no statement places, one a line; of the train
  /// block other choices before.
  std::vector<std::string> stepLines();

  /// True if the statement is to say how each of its operations runs.
  bool isExplicit(const PlanStatement &statement) const;

  friend class StatementSplitter;
  void splitStatement(PlanStatement &statement, TextEdits &edits);

  /// Operations of a training step that the text of statements places.
  llvm::DenseSet<mlir::Operation *> placed;
  const ast::TrainBlock *trainBlock = nullptr;
  /// Fields that the train block gets.
  std::vector<std::string> newFields;

  const Program &program;
  const Overrides &overrides;
  const ExplicitOps &explicitOps;
  shd::ProgramOp planned;
  Mesh mesh;
  PlanModel model;
  FreshNames names;
  PlanCopies copies;
  std::map<PlanFrame *, std::string> variantNames;
  std::map<const ast::LayerDecl *, std::vector<Variant>> layerVariants;
  /// Declarations of layers in the file that is being printed.
  std::vector<const ast::LayerDecl *> layerItems;
  bool hasHardware = false, hasMesh = false;
};

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_PLANPRINTER_H
