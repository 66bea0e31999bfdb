//===- PlanCopies.h - Statements that a plan adds --------------*- C++ -*-===//
//
// Copies that the optimizer makes once for several users, and values that
// change their layout where they are carried on, have no text of their own:
// here is decided where their statements stand and what they are called.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PLANTEXT_PLANCOPIES_H
#define SHARDC_LIB_PLANTEXT_PLANCOPIES_H

#include "PlanModel.h"
#include <set>

namespace shardc {

/// A value as statements of a frame call it.
struct FrameValue {
  std::string name;
  std::vector<std::string> indices;
};

/// A copy's statement.
struct PlanCopy {
  mlir::Operation *op = nullptr;
  PlanFrame *frame = nullptr;
  /// The item before which it stands.
  const ast::Item *anchor = nullptr;
  FrameValue source;
};

/// `x[B@X, D] = x_copy[B, D]`: a value takes the layout in which it goes on.
struct PlanRebinding {
  FrameValue value;
  mlir::Type type;
  shd::ShardingAttr from, to;
  /// The copy that it is taken from, or null.
  mlir::Operation *copy = nullptr;
};

/// How an operation makes its result, before it is stored.
shd::ShardingAttr madeLayout(mlir::Operation *op);

/// Names that are used nowhere in the program.
class FreshNames {
public:
  explicit FreshNames(const PlanModel &model);
  /// `base_1`, or the next number that is free in the frame.
  std::string numbered(PlanFrame *frame, llvm::StringRef base);
  /// `base`, or with a number if that is taken.
  std::string plain(PlanFrame *frame, llvm::StringRef base);
  std::string numbered(llvm::StringRef base) { return numbered(nullptr, base); }

private:
  bool take(PlanFrame *frame, const std::string &name);

  std::set<std::string, std::less<>> used;
  std::set<std::pair<PlanFrame *, std::string>> taken;
};

class PlanCopies {
public:
  PlanCopies(const PlanModel &model, FreshNames &names, shd::ProgramOp planned);

  /// Copies whose statements stand before an item.
  llvm::ArrayRef<const PlanCopy *> before(PlanFrame *frame,
                                          const ast::Item *item) const;
  /// Rebindings before an item, and at the end of a body (of a repeat; of the
  /// frame if null).
  llvm::ArrayRef<PlanRebinding> rebindingsBefore(PlanFrame *frame,
                                                 const ast::Item *item) const;
  llvm::ArrayRef<PlanRebinding> rebindingsAtEnd(PlanFrame *frame,
                                                const ast::Item *repeat) const;

  /// The name of a copy in a frame. In a frame below that of its statement it
  /// becomes a parameter.
  std::string nameIn(PlanFrame *frame, mlir::Operation *copy);

  /// True if the copy gets a statement: something in one reads it.
  bool isWritten(mlir::Operation *copy) const { return copies.contains(copy); }
  /// Copies that a frame takes as parameters, in the order in which they were
  /// asked for.
  llvm::ArrayRef<mlir::Operation *> parameters(PlanFrame *frame) const;
  /// Copies that a layer returns in place of the values themselves, and where
  /// its list of results names these.
  struct Returned {
    const ast::Name *result;
    mlir::Operation *copy;
  };
  llvm::ArrayRef<Returned> returned(PlanFrame *frame) const;
  /// `name: bf16[B, T]`.
  std::string parameterText(PlanFrame *frame, mlir::Operation *copy);

  /// How the text stores an operation's result: as the plan does, or at once in
  /// the layout in which it is carried on, if nothing else reads it.
  shd::ShardingAttr resultPin(mlir::Operation *op) const;

  /// The copy that leaves the program in place of an input or a weight, to
  /// which nothing can be assigned, or null.
  mlir::Operation *copyThatLeaves(shd::OutputOp output) const;

  /// The value as statements of `frame` call it, if they can name it.
  std::optional<FrameValue> nameOf(PlanFrame *frame, mlir::Value value) const;

private:
  using Key = std::pair<PlanFrame *, const ast::Item *>;
  /// A reader of a copy, or a statement that must follow it, in program order.
  struct Reader {
    PlanPath path;
    unsigned position;
  };
  std::vector<Reader> readersOf(mlir::Operation *copy) const;
  void place(mlir::Operation *copy);
  bool placeReturned(mlir::Operation *copy, llvm::ArrayRef<Reader> readers);
  void addCopy(mlir::Operation *copy, const PlanPath &path, size_t depth,
               const std::optional<FrameValue> &source);
  bool isReturnedTo(PlanFrame *frame, mlir::Operation *copy) const;
  void placeFlows(mlir::Operation *op);
  void placeRepeat(shd::RepeatOp repeat);
  bool storeAs(mlir::Value value, shd::ShardingAttr carried);
  void placeState(shd::UpdateOp update);
  void placeOutput(shd::OutputOp output);
  std::optional<PlanPath> readerPath(mlir::OpOperand &use) const;
  std::optional<PlanPath> endOfState(shd::UpdateOp update) const;
  std::optional<FrameValue> readName(PlanFrame *frame, mlir::Value value) const;
  mlir::Operation *latestOther(mlir::OpOperand &use) const;

  const PlanModel &model;
  FreshNames &names;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<PlanCopy>> copies;
  llvm::DenseMap<mlir::Operation *, shd::ShardingAttr> storedAs;
  std::map<Key, llvm::SmallVector<const PlanCopy *, 1>> copiesBefore;
  std::map<Key, std::vector<PlanRebinding>> repeatEntries, ends;
  std::map<std::pair<PlanFrame *, mlir::Operation *>, std::string> copyNames;
  std::map<PlanFrame *, llvm::SmallVector<mlir::Operation *, 1>> copyParameters;
  std::map<PlanFrame *, llvm::SmallVector<Returned, 1>> copiesReturned;
};

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_PLANCOPIES_H
