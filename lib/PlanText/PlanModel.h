//===- PlanModel.h - Which operations a piece of text became ---*- C++ -*-===//
//
// Relates a planned program to its source: every statement, once for the file
// and once for each call of a layer, with the operations that were made of it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PLANTEXT_PLANMODEL_H
#define SHARDC_LIB_PLANTEXT_PLANMODEL_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace shardc {

struct PlanStatement;

/// Text that runs in one scope: the file level, or a layer at one call.
struct PlanFrame {
  /// Null at file level.
  const ast::LayerDecl *layer = nullptr;
  PlanFrame *parent = nullptr;
  /// The call, and its number among the calls of its statement.
  const ast::Expr *call = nullptr;
  /// The statement with the call, and what it hands to each parameter (null
  /// where the call says nothing).
  PlanStatement *caller = nullptr;
  llvm::SmallVector<const ast::Expr *, 4> arguments;
  /// As `shd.call` names it; empty at file level.
  std::string name;
};

/// One item of a frame, and the items around it from the file level inwards.
struct PlanPlace {
  PlanFrame *frame = nullptr;
  const ast::Item *item = nullptr;
  bool operator==(const PlanPlace &other) const = default;
};
using PlanPath = llvm::SmallVector<PlanPlace, 4>;

/// An assignment in one frame.
struct PlanStatement {
  PlanFrame *frame = nullptr;
  const ast::AssignStmt *ast = nullptr;
  /// The items around it and it itself.
  PlanPath path;
  /// Operations of the statement itself (not of layers that it calls), in
  /// program order, without constants and copies.
  llvm::SmallVector<mlir::Operation *, 4> ops;
  /// Its calls of layers, in order of evaluation.
  llvm::SmallVector<PlanFrame *, 1> calls;
};

class PlanModel {
public:
  PlanModel(const Program &program, llvm::SourceMgr &sourceMgr,
            shd::ProgramOp planned);

  /// Start of the buffer of a file of the program.
  const char *bufferStart(size_t file) const { return starts[file]; }
  llvm::SMRange fileRange(size_t file) const { return ranges[file]; }
  size_t numFiles() const { return starts.size(); }
  const ast::File &file(size_t index) const { return *program.files[index]; }
  /// The file that an import reads; nothing if an earlier import read it.
  std::optional<size_t> imported(const ast::ImportDecl &import) const;
  /// Start of the buffer that `loc` is in.
  const char *bufferStart(llvm::SMLoc loc) const;

  PlanFrame *fileFrame() const { return frames.front().get(); }
  const std::vector<std::unique_ptr<PlanFrame>> &allFrames() const {
    return frames;
  }
  PlanStatement *statement(PlanFrame *frame, const ast::Item *item) const;
  /// The statement that an operation belongs to, or null.
  PlanStatement *statementOf(mlir::Operation *op) const {
    return statementOfOp.lookup(op);
  }
  PlanFrame *frameOf(mlir::Operation *op) const;

  /// The operation that defines a name at `loc` in a frame, or null.
  mlir::Operation *definition(PlanFrame *frame, llvm::SMLoc loc) const;
  /// Where the reference of an operand is; invalid if it has none.
  llvm::SMLoc useLoc(mlir::OpOperand &operand) const;
  /// Where an operation's `shd.def` is; invalid if it has none.
  llvm::SMLoc defLoc(mlir::Operation *op) const;
  /// The reference at `loc`, or null.
  const ast::Expr *reference(llvm::SMLoc loc) const {
    return references.lookup(loc.getPointer());
  }
  /// The name that stands at `loc`.
  std::string nameAt(llvm::SMLoc loc) const;

  /// The repeat statement of an operation, or of a place.
  std::optional<PlanPath> pathOf(shd::RepeatOp repeat) const;
  shd::RepeatOp repeatAt(PlanFrame *frame, const ast::Item *item) const;
  /// The layer that a call names, or null.
  const ast::LayerDecl *layer(llvm::StringRef name) const {
    return layers.lookup(name);
  }
  shd::OutputOp output(const ast::OutputDecl &decl) const;

  /// The operation of a parameter that moves what the call gives it, if that is
  /// a name whose list, if any, places nothing; or null.
  mlir::Operation *bareParameter(PlanFrame *call, unsigned parameter) const;
  /// True if the operation moves an argument of its frame to a parameter.
  bool isParameter(mlir::Operation *op) const;

  /// Program order of operations.
  unsigned position(mlir::Operation *op) const { return positions.lookup(op); }
  /// The position of the first operation of a call.
  unsigned firstPosition(PlanFrame *call) const {
    return firstPositions.lookup(call);
  }

private:
  using Items = std::vector<ast::ItemPtr>;
  void collectLayers(const Items &items);
  void collectReferences(const Items &items);
  void collectReferences(const ast::Expr &expr);
  void collectReferences(const ast::IndexList &list);
  void walk(PlanFrame *frame, const Items &items, PlanPath &path);
  void walkCalls(PlanStatement &statement, const ast::Expr &expr);
  void addCall(PlanStatement &statement, const ast::Expr &call);
  void addOperation(mlir::Operation *op);
  void addRepeats(mlir::Operation *op, const PlanStatement &statement);
  llvm::SMLoc locOf(mlir::Operation *op, int64_t offset) const;
  llvm::SMLoc sourceLoc(mlir::Operation *op) const;

  const Program &program;
  llvm::SourceMgr &sourceMgr;
  std::vector<const char *> starts;
  std::vector<llvm::SMRange> ranges;
  /// Offsets of the first byte of each line of each file.
  std::vector<std::vector<size_t>> lines;
  llvm::StringMap<const ast::LayerDecl *> layers;
  llvm::DenseMap<const char *, const ast::Expr *> references;
  std::vector<std::unique_ptr<PlanFrame>> frames;
  llvm::StringMap<PlanFrame *> frameByName;
  llvm::StringMap<unsigned> callCounts;
  std::map<std::pair<PlanFrame *, const ast::Item *>,
           std::unique_ptr<PlanStatement>>
      statements;
  /// Statements by the place of their targets.
  std::map<std::pair<PlanFrame *, const char *>, PlanStatement *> byTarget;
  std::map<std::pair<PlanFrame *, const char *>, mlir::Operation *> definitions;
  llvm::DenseMap<mlir::Operation *, PlanStatement *> statementOfOp;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseMap<PlanFrame *, unsigned> firstPositions;
  llvm::DenseMap<mlir::Operation *, PlanPath> repeatPaths;
  std::map<std::pair<PlanFrame *, const ast::Item *>, mlir::Operation *>
      repeats;
  llvm::DenseMap<const char *, mlir::Operation *> outputs;
};

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_PLANMODEL_H
