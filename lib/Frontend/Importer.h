//===- Importer.h - From the syntax tree to the shd dialect ----*- C++ -*-===//
//
// Private to lib/Frontend. One object imports one program: it resolves names,
// checks what operations do not verify themselves, and emits them. Its parts, a
// file each: Importer.cpp (file level), Statements.cpp, Repeat.cpp,
// LayerCalls.cpp, References.cpp, Expressions.cpp, Products.cpp, Functions.cpp,
// StructuredFunctions.cpp, Emit.cpp. After an error a value is poison: what
// uses it is skipped silently, so that every independent error is reported
// once.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_IMPORTER_H
#define SHARDC_LIB_FRONTEND_IMPORTER_H

#include "Dims.h"
#include "FunctionTable.h"
#include "Operand.h"
#include "Placements.h"
#include "Scope.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/SaveAndRestore.h"

namespace shardc {

/// The mesh and options of an import.
struct ImportSettings {
  const Mesh *mesh = nullptr;
  bool allowPadding = false;
  /// Buffer of each file of the program, in the order of `Program::files`.
  llvm::ArrayRef<unsigned> buffers;
  /// The repeat whose layers lie on an axis of stages, and this axis.
  const ast::RepeatStmt *layers = nullptr;
  std::string stages = {};
};

class TrainReader;

class Importer {
public:
  Importer(SourceFiles &files, DimScope &fileDims,
           const ImportSettings &settings);

  /// Fills the body of `program` from the files, the main one first. Errors
  /// have been reported through `files`.
  void importFiles(llvm::ArrayRef<const ast::File *> sources,
                   shd::ProgramOp program);

private:
  friend class LayerNameChecker;

  //===--------------------------------------------------------------------===//
  // State
  //===--------------------------------------------------------------------===//

  /// The file, or one call of a layer.
  struct Frame {
    Frame *caller = nullptr;
    const ast::LayerDecl *layer = nullptr;
    /// Left sides of the calls, for names: `y.h` for a call on the left of
    /// which stands h, in a call on the left of which stands y.
    std::string path;
    /// The same, but different for each call.
    std::string call;
    /// Numbers of the iterations of the repeats around, by index name.
    llvm::SmallVector<std::pair<mlir::StringAttr, mlir::Value>, 2> iterations;
    unsigned depth = 0;
  };

  /// The statement that is being imported.
  struct Statement {
    explicit Statement(mlir::Location loc) : loc(loc) {}
    mlir::Location loc;
    /// The name of its operations in reports.
    mlir::StringAttr name;
    /// LEFT of the layer calls in it.
    std::string left;
    int64_t file = 0;
    /// Products that were multiplied out so far.
    unsigned expansions = 0;
    /// An index that several factors of an argument carry, and which is not
    /// summed there since the left side names it.
    struct Unsummed {
      mlir::StringAttr index;
      llvm::SMRange range;
    };
    llvm::SmallVector<Unsummed, 2> unsummed;
  };

  /// A state's value at the end of the region that declares it.
  struct Update {
    mlir::StringAttr name;
    /// The declared tensor, or in a repeat the part of an iteration.
    mlir::Value state, value;
    mlir::Location loc;
  };

  /// A call of a layer that is being made.
  struct Callee {
    Callee(SourceFiles &files, DimScope &fileDims, Scope *caller)
        : dims(files, &fileDims), scope(Scope::Kind::Layer, caller) {}
    Frame frame;
    DimScope dims;
    Scope scope;
    /// The argument's index, and its extent, of each index of the parameters.
    llvm::DenseMap<mlir::StringAttr, std::pair<mlir::StringAttr, int64_t>>
        outer;
  };

  /// A state that a block declares.
  struct DeclaredState {
    std::string name;
    mlir::StringAttr symbol;
    mlir::Value initial;
    mlir::Location loc;
  };

  //===--------------------------------------------------------------------===//
  // File level and blocks (Importer.cpp)
  //===--------------------------------------------------------------------===//

  using Items = std::vector<ast::ItemPtr>;
  void collectLayers(const Items &items);
  void checkParameters(const ast::LayerDecl &layer);
  void collectAssignedNames(const Items &items);
  void importOutputs(const Items &items);
  void importOrders(const Items &items, shd::ProgramOp program);
  void importOutput(const ast::OutputDecl &output);
  /// Sets what the `train` block says of the program (Training.cpp).
  void importTraining(const ast::TrainBlock &block, shd::ProgramOp program);
  void importLayouts(const Items &items, shd::ProgramOp program);
  void setLayouts(llvm::ArrayRef<const ast::StepLayout *> layouts,
                  shd::ProgramOp program);
  void importLoss(const ast::Setting &setting, shd::ProgramOp program);
  void importRecomputed(const ast::Placing &placing, shd::ProgramOp program,
                        TrainReader &reader);
  mlir::FailureOr<mlir::ArrayAttr>
  pinsOf(llvm::ArrayRef<const ast::IndexList *> lists);
  mlir::DictionaryAttr importLayout(const ast::StepLayout &layout);
  void importPlacing(const ast::Placing &placing, shd::ProgramOp program,
                     TrainReader &reader);
  /// Dims, tensors, then statements of a block.
  void importBlock(const Items &items);
  void importStatements(const Items &items);
  /// False once the program is too large or has too many errors: `next` and
  /// what follows is not imported.
  bool hasRoom(llvm::SMRange next);
  void declareTensors(const Items &items, std::vector<DeclaredState> &states);
  void declareTensor(const ast::TensorDecl &decl,
                     std::vector<DeclaredState> &states);
  /// Declares a tensor; in repeats a stacked one, of which it reads the part.
  /// Returns the operation that makes a tensor of the type where it stands.
  mlir::Operation *createTensor(mlir::Location loc, mlir::RankedTensorType type,
                                shd::TensorKind kind, mlir::StringAttr symbol,
                                llvm::ArrayRef<mlir::StringAttr> indices);
  /// `what` has not too many dimensions, and the number of its elements fits 64
  /// bits; false after an error.
  bool checkSize(llvm::ArrayRef<int64_t> extents, llvm::SMRange range,
                 const llvm::Twine &what);
  /// Records the updates of states that were assigned.
  void collectUpdates(llvm::ArrayRef<DeclaredState> states);
  void emitUpdates();
  /// Names and extents of a list of dims; false after an error.
  bool declaredIndices(const ast::IndexList &list, IndexNames &names,
                       llvm::SmallVectorImpl<int64_t> &extents);

  //===--------------------------------------------------------------------===//
  // Statements (Statements.cpp, Repeat.cpp, LayerCalls.cpp)
  //===--------------------------------------------------------------------===//

  void importAssign(const ast::AssignStmt &stmt);
  void importSingle(const ast::AssignStmt &stmt, const ast::Target &target);
  void importMultiple(const ast::AssignStmt &stmt);
  void importResult(const ast::Target &target, Operand result);
  void importScatter(const ast::AssignStmt &stmt, const ast::Target &target,
                     Binding &binding);
  Operand evaluateRight(const ast::AssignStmt &stmt, const Context &context,
                        const Binding *existing, const Target &target,
                        const IndexNames &leftNames);
  Statement makeStatement(const ast::Target &target);
  /// True if a left side names elements of a tensor, not all of it.
  bool writesPart(const ast::IndexList &list);
  /// Names on the left and their pin, which fails by itself; false after an
  /// error in the names.
  bool leftIndices(const ast::IndexList &list, IndexNames &names,
                   mlir::FailureOr<shd::ShardingAttr> &pin);
  bool checkExisting(const ast::Target &target, const Binding &existing,
                     const Operand &value);
  /// Makes `value` the value of `target`, laid out by `pin`.
  void bindTarget(const ast::Target &target, Operand value,
                  shd::ShardingAttr pin);
  void poisonTarget(const ast::Target &target);
  bool refuseRebinding(const ast::Name &name, const Binding *binding);
  mlir::FailureOr<mlir::Type> wantedType(const ast::AssignStmt &stmt,
                                         const Binding *existing);

  using NameSet = llvm::SetVector<llvm::StringRef>;
  struct Carried {
    llvm::StringRef name;
    Binding *outer = nullptr;
  };
  void importRepeat(const ast::RepeatStmt &stmt);
  void importStages(const ast::RepeatStmt &stmt, shd::RepeatOp repeat);
  void importRepeatBody(const ast::RepeatStmt &stmt, shd::RepeatOp repeat,
                        llvm::ArrayRef<Carried> carried);
  void checkSaved(const ast::RepeatStmt &stmt, Scope &body);
  llvm::SmallVector<Carried> findCarried(const ast::RepeatStmt &stmt);
  /// Names that the items assign, in the order of their first assignment.
  void collectAssigned(const Items &items, NameSet &names);
  const NameSet &assignedByLayer(const ast::LayerDecl &layer);

  /// The results of a call; nothing after an error.
  std::optional<llvm::SmallVector<Operand, 2>> callLayer(const ast::Expr &call);
  bool checkCall(const ast::Expr &call, const ast::LayerDecl &layer);
  std::optional<llvm::SmallVector<const ast::Expr *>>
  matchArguments(const ast::Expr &call, const ast::LayerDecl &layer);
  bool bindParameters(const ast::Expr &call, const ast::LayerDecl &layer,
                      Callee &callee);
  bool bindDimParameter(const ast::Parameter &parameter, const ast::Expr &value,
                        DimScope &calleeDims);
  bool bindTensorParameter(const ast::Parameter &parameter, Operand argument,
                           Callee &callee);
  bool bindParameterDims(const ast::Parameter &parameter,
                         const Operand &argument, Callee &callee,
                         IndexNames &names);
  Operand emitParameter(const ast::Parameter &parameter, Operand argument,
                        shd::ShardingAttr pin, Callee &callee);
  std::optional<llvm::SmallVector<Operand, 2>>
  takeResults(const ast::Expr &call, Callee &callee);
  /// Reports results that are never assigned; false if there are any.
  bool checkResults(const ast::LayerDecl &layer,
                    llvm::function_ref<bool(llvm::StringRef)> isAssigned);
  std::string uniqueCall();
  /// Imports the body of a layer in a scope of its own.
  void importLayerBody(Callee &callee);
  /// Reports the errors of layers that are never called: all where their
  /// parameters' indices are dims of the file, else those in names.
  void checkUncalledLayers(shd::ProgramOp program);
  void checkUncalledLayer(const ast::LayerDecl &layer);

  //===--------------------------------------------------------------------===//
  // Expressions (Expressions.cpp, References.cpp, Products.cpp)
  //===--------------------------------------------------------------------===//

  Operand evaluate(const ast::Expr &expr, const Context &context,
                   const Target *hint = nullptr);
  Operand evaluateArgument(const ast::Expr &expr, const Context &context);
  Operand evaluateLeaf(const ast::Expr &expr, const Context &context,
                       const Target *hint);
  Operand evaluateComparison(const ast::Expr &expr, const Context &context,
                             const Target *hint);
  /// A number that is known now: `none`-valued parameters give nothing, without
  /// an error, where `none` is given to tell so.
  Operand evaluateRemainder(const ast::Expr &expr, const Context &context,
                            const Target *hint);
  std::optional<Scalar> evaluateConstant(const ast::Expr &expr,
                                         bool *none = nullptr);

  std::vector<Term> buildTerms(const ast::Expr &expr, const Context &context,
                               const Target *hint);
  Product buildProduct(const ast::Expr &expr, const Context &context,
                       bool &negative, const Target *hint);
  void addFactor(const ast::Expr &expr, const Context &context,
                 Product &product, bool &negative, const Target *hint);
  void addGroup(const ast::Expr &inner, const Context &context,
                Product &product, bool &negative);
  void addSum(const ast::Expr &inner, const Context &context, Product &product);
  void addLeaf(Operand leaf, Product &product, bool inverse);

  Operand lowerSum(std::vector<Term> terms, const Context &context,
                   const IndexNames &outside, unsigned outerFactors,
                   const Target *hint);
  Operand lowerTerm(Term term, const Context &context,
                    const IndexNames &outside, unsigned outerFactors,
                    const Target *hint);
  Operand lowerProduct(Product product, const Context &context,
                       const IndexNames &outside, unsigned outerFactors,
                       const Target *hint);
  bool lowerInnerSums(Product &product, const Context &context,
                      const IndexNames &outside, unsigned outerFactors);
  void warnOfLoneIndex(llvm::ArrayRef<FlatFactor> flat, mlir::StringAttr index,
                       unsigned outerFactors);
  void warnOfUnsummed(llvm::ArrayRef<FlatFactor> flat,
                      const IndexNames &summed);
  IndexNames summedIndices(const Product &product, const Context &context,
                           const IndexNames &outside, unsigned outerFactors);
  /// State that the steps of one product share.
  struct Contraction {
    const IndexNames *summed = nullptr;
    /// Element type of intermediate results.
    mlir::Type type;
    const Target *hint = nullptr;
  };
  Operand contractGroup(Product &product, const Contraction &contraction,
                        const IndexNames &needed, bool isLast);
  Operand contractFactors(llvm::ArrayRef<Operand> factors,
                          const Contraction &contraction,
                          const IndexNames &needed, bool isLast);
  Operand multiply(const Operand &a, const Operand &b, IndexNames result,
                   bool sums, mlir::Type type, const Target *hint);
  Operand divide(const Operand &a, const Operand &b,
                 const Contraction &contraction, bool isLast);
  bool addUnitNumerator(Product &product, mlir::Type type);
  std::optional<mlir::Type> productType(const Product &product,
                                        llvm::ArrayRef<Operand *> leaves,
                                        bool divides);
  Operand applyCoefficient(Operand value, const Product &product,
                           mlir::Type type, const Target *hint);
  /// Annotated operands of one operation place each index alike and no axis
  /// twice; `what` is what errors call the operation. False after an error.
  bool checkPlacements(llvm::ArrayRef<const Operand *> operands,
                       llvm::StringRef what) {
    return checkPlacements(operands, what, Travelling());
  }
  /// An index of some operands that may be on an axis that others, before or
  /// behind them, have on an index of `along`: it travels around a ring.
  struct Travelling {
    mlir::StringAttr index;
    IndexNames along;

    bool mayShare(mlir::StringAttr a, mlir::StringAttr b) const {
      return index && ((b == index && llvm::is_contained(along, a)) ||
                       (a == index && llvm::is_contained(along, b)));
    }
  };
  bool checkPlacements(llvm::ArrayRef<const Operand *> operands,
                       llvm::StringRef what, const Travelling &travelling);
  bool checkSharedIndex(const Operand &a, const Operand &b,
                        llvm::StringRef what);
  bool checkSharedAxis(const Operand &a, const Operand &b, llvm::StringRef what,
                       const Travelling &travelling);

  Operand evaluateReference(const ast::Expr &expr, const Context &context);
  Operand evaluateBareName(const ast::Expr &expr, const Context &context);
  std::optional<Operand> iterationNumber(llvm::StringRef name,
                                         llvm::SMRange range);
  void reportUnknownTensor(llvm::StringRef name, llvm::SMRange range);
  /// A list of a reference or left side against the tensor that it names.
  struct BoundList {
    /// One name per dimension; read dimensions have one that nothing else has.
    IndexNames names;
    /// Dimensions that positions read or write, and the positions.
    llvm::SmallVector<int64_t, 2> gathered;
    llvm::SmallVector<Operand, 2> positions;
    /// Names of the elements that the list names, in order.
    IndexNames free;
    shd::ShardingAttr pin;
  };
  std::optional<BoundList> bindList(const ast::IndexList &list,
                                    llvm::StringRef name, llvm::SMRange range,
                                    const Binding &binding);
  bool bindIndex(const ast::Index &index, int64_t extent, unsigned dim,
                 llvm::StringRef name, const Binding &binding,
                 BoundList &bound);
  Operand evaluatePosition(const ast::Expr &expr, int64_t extent);
  void nameGathered(BoundList &bound, const Binding &binding);
  Operand emitGather(const Operand &table, const BoundList &bound);

  //===--------------------------------------------------------------------===//
  // Functions (Functions.cpp, StructuredFunctions.cpp)
  //===--------------------------------------------------------------------===//

  /// Where an attribute of an operation is written.
  using Option = std::pair<const char *, llvm::SMRange>;
  /// Values of a function's parameters, null where absent.
  using Slots = llvm::SmallVector<const ast::Expr *, 8>;

  Operand evaluateCall(const ast::Expr &call, const Context &context,
                       const Target *hint);
  Operand evaluateIndexFunction(const ast::Expr &call);
  Operand evaluateFunction(const ast::Expr &call, const FunctionInfo &info,
                           const Context &context, const Target *hint);
  std::optional<Slots> matchParameters(const ast::Expr &call,
                                       const FunctionInfo &info);
  bool checkBrackets(const ast::Expr &call, const FunctionInfo &info);
  void reportUnknownFunction(const ast::Expr &call);
  Operand functionElementwise(const ast::Expr &call, const FunctionInfo &info,
                              const Slots &slots, const Context &context,
                              const Target *hint);
  Operand functionCast(const ast::Expr &call, const Context &context,
                       const Target *hint);
  Operand functionReduce(const ast::Expr &call, const FunctionInfo &info,
                         const Slots &slots, const Context &context,
                         const Target *hint);
  Operand functionNormalize(const ast::Expr &call, const FunctionInfo &info,
                            const Slots &slots, const Context &context,
                            const Target *hint);
  Operand functionAttention(const ast::Expr &call, const Slots &slots,
                            const Context &context, const Target *hint);
  Operand functionRope(const ast::Expr &call, const Slots &slots,
                       const Context &context);
  std::optional<int64_t> readChunks(const ast::Expr *expr,
                                    llvm::ArrayRef<int64_t> labels);
  Operand functionCrossEntropy(const ast::Expr &call, const Slots &slots,
                               const Context &context, const Target *hint);
  // Experts.cpp
  Operand functionTopK(const ast::Expr &call, const Slots &slots,
                       const Context &context);
  Operand functionDispatch(const ast::Expr &call, const Slots &slots,
                           const Context &context, const Target *hint);
  Operand functionCombine(const ast::Expr &call, const Slots &slots,
                          const Context &context, const Target *hint);
  struct ExpertCall;
  bool readExpertOptions(llvm::ArrayRef<const ast::Expr *> options,
                         ExpertCall &shape);
  std::optional<int64_t> readInteger(const ast::Expr &expr,
                                     llvm::StringRef name);
  bool pickLargest(ExpertCall &shape, llvm::SMRange range);
  bool checkSlots(const ExpertCall &shape, int64_t slots, llvm::SMRange range);
  bool checkDispatched(mlir::Value picks, const ExpertCall &shape,
                       llvm::SMRange range);
  Operand emitTopK(const Operand &input, mlir::StringAttr over, int64_t k,
                   llvm::SMRange range, llvm::ArrayRef<Option> options);
  template <typename Op>
  Operand emitExperts(const ast::Expr &call, const ExpertCall &shape,
                      llvm::ArrayRef<const Operand *> operands,
                      IndexNames result, mlir::Type element);

  Operand functionSplit(const ast::Expr &call, const Slots &slots,
                        const Context &context);
  Operand functionMerge(const ast::Expr &call, const Slots &slots,
                        const Context &context);
  Operand functionSlice(const ast::Expr &call, const Slots &slots,
                        const Context &context);
  Operand functionConcat(const ast::Expr &call, const Context &context);
  Operand functionIota(mlir::StringAttr index, llvm::SMRange range);

  /// The names in a function's plain brackets.
  IndexNames bracketNames(const ast::Expr &call);
  /// Brackets added to what the context names.
  Context argumentContext(const Context &context, IndexNamesRef brackets = {});
  /// The common type of operands that are not poison; numbers among them become
  /// constants. Nothing after an error.
  std::optional<mlir::Type>
  commonOperandType(llvm::ArrayRef<Operand *> operands, llvm::SMRange range);
  bool requireIndices(const Operand &operand, IndexNamesRef names,
                      llvm::SMRange range);
  Operand requireTensor(Operand operand);
  /// The natural type, or the wanted one where the operation can make it
  /// directly.
  mlir::Type resultType(mlir::Type natural, const Target *hint);
  struct AttentionShape;
  bool readAttentionOptions(const Slots &slots, AttentionShape &shape);
  bool findQueryIndex(const ast::Expr &call, AttentionShape &shape);
  Operand emitAttention(const ast::Expr &call, const AttentionShape &shape,
                        llvm::ArrayRef<const Operand *> operands,
                        mlir::Type element);
  /// The names of dims that a function makes; false after an error.
  bool madeNames(llvm::ArrayRef<ast::Name> names, IndexNames &made);

  //===--------------------------------------------------------------------===//
  // Operations (Emit.cpp)
  //===--------------------------------------------------------------------===//

  /// The type of a result with these indices, of the extents that they have in
  /// the operands or, if none has them, as dims.
  mlir::RankedTensorType tensorType(llvm::ArrayRef<const Operand *> operands,
                                    IndexNamesRef names, mlir::Type element);
  shd::IndexingAttr indexing(llvm::ArrayRef<const Operand *> operands,
                             IndexNamesRef result);
  /// Names and marks an operation of this statement and makes its operand. The
  /// operation's verifier has checked its typing rules; an error of these is
  /// reported at the operand or option that breaks them.
  Operand record(mlir::Operation *op, llvm::ArrayRef<const Operand *> operands,
                 IndexNames result, llvm::SMRange range,
                 llvm::ArrayRef<Option> options = {});
  bool checkPartialUse(mlir::Operation *op,
                       llvm::ArrayRef<const Operand *> operands);
  Operand emitConstant(const Scalar &scalar, mlir::Type type,
                       llvm::SMRange range);
  /// A tensor as it is; a number as a constant of `type`.
  Operand materialize(Operand operand, mlir::Type type);
  Operand emitElementwise(shd::Function function,
                          llvm::ArrayRef<const Operand *> operands,
                          IndexNames result, mlir::Type type,
                          llvm::SMRange range);
  Operand emitEinsum(const Operand &a, const Operand &b, IndexNames result,
                     mlir::Type type, llvm::SMRange range);
  Operand emitReduce(shd::Reduction kind, const Operand &input,
                     IndexNames result, mlir::Type type, llvm::SMRange range);
  Operand emitReshard(const Operand &input, llvm::SMRange range);
  /// The value as one that a repeat may carry and a state may become: constants
  /// and iteration numbers are copied.
  mlir::Value stored(mlir::Value value, llvm::StringRef name,
                     mlir::Location loc);
  /// The value in the target's order and type, by one more operation if needed;
  /// a bare reference becomes a reshard.
  Operand finish(Operand value, const Target &target);
  /// A result can be a partial sum only if the operation sums or is linear.
  bool checkPartialResult(mlir::Operation *op, shd::ShardingAttr pin,
                          const ast::Name &name);
  /// True if `op` was made for the current statement and has no name yet.
  bool isTemporary(mlir::Operation *op);
  /// Marks `op` as what makes the value of a name at `def`.
  void setDefinition(mlir::Operation *op, llvm::SMLoc def,
                     shd::ShardingAttr pin);

  mlir::StringAttr str(const llvm::Twine &text) {
    return mlir::StringAttr::get(files.getContext(), text);
  }
  mlir::ArrayAttr strings(IndexNamesRef names);
  mlir::StringAttr uniqueName(llvm::StringRef name);
  std::string pathTo(llvm::StringRef name) const;
  int64_t fileOf(llvm::SMLoc loc);
  int64_t offsetOf(llvm::SMLoc loc);
  mlir::Type i32() { return builder.getI32Type(); }

  SourceFiles &files;
  /// Counts the operations that are made.
  struct Counter : mlir::OpBuilder::Listener {
    void notifyOperationInserted(mlir::Operation *,
                                 mlir::OpBuilder::InsertPoint) override {
      ++operations;
    }
    unsigned operations = 0;
  };
  Counter counter;
  mlir::OpBuilder builder;
  Placements placements;
  /// Names that repeats save for the backward pass; absent if none says so.
  std::optional<std::vector<std::string>> savedInRepeats;
  llvm::ArrayRef<unsigned> buffers;
  /// ImportSettings::layers and ImportSettings::stages.
  const ast::RepeatStmt *staged = nullptr;
  std::string stages;

  llvm::StringMap<const ast::LayerDecl *> layers;
  std::vector<const ast::LayerDecl *> layerOrder;
  /// Layers in which a call found errors: reported once.
  llvm::SmallPtrSet<const ast::LayerDecl *, 4> faultyLayers;
  llvm::SmallPtrSet<const ast::LayerDecl *, 8> calledLayers;
  llvm::DenseMap<const ast::LayerDecl *, std::unique_ptr<NameSet>>
      layerAssigned;
  llvm::StringMap<unsigned> nameCounts, callCounts;
  /// Layer calls so far.
  unsigned calls = 0;
  /// Places and indices that a warning has been given for.
  llvm::DenseSet<std::pair<const char *, mlir::StringAttr>> warned;
  /// Names that any statement of the program assigns, for notes.
  llvm::StringMap<llvm::SMRange> assignedNames;

  DimScope &fileDims;
  DimScope *dims;
  Scope fileScope{Scope::Kind::File, nullptr};
  Scope *scope = &fileScope;
  Frame fileFrame;
  Frame *frame = &fileFrame;
  std::optional<Statement> statement;
  /// By what gives the picks, the dispatches of them.
  struct Dispatched {
    int64_t k = 0;
    bool dropless = false;
    llvm::SMRange range;
  };
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Dispatched, 1>> dispatched;
  /// Updates of the states of the region that is being filled.
  std::vector<Update> updates;
};

/// True if the value of `batch` in a train block leaves the batch open.
bool isAutoBatch(const ast::SettingValue &value, const DimScope &dims);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_IMPORTER_H
