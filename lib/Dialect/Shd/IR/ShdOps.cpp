//===- ShdOps.cpp - Operations of the shd dialect -------------------------===//
//
// Verifiers of the operations; labels are those of their descriptions. Indexing
// and shardings are verified for all operations in ShdVerify.cpp.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "Verify.h"
#include "shardc/Cost/Movement.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Places.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// ` chunks 8`, ` chunks all`; nothing for none.
ParseResult shd::parseRowChunks(OpAsmParser &parser, IntegerAttr &chunks) {
  int64_t number = kNoChunks;
  if (succeeded(parser.parseOptionalKeyword("chunks"))) {
    if (succeeded(parser.parseOptionalKeyword("all")))
      number = kAllChunks;
    else if (parser.parseInteger(number))
      return failure();
  }
  chunks = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

void shd::printRowChunks(OpAsmPrinter &printer, Operation *,
                         IntegerAttr chunks) {
  if (chunks.getInt() == kAllChunks)
    printer << " chunks all";
  else if (chunks.getInt() != kNoChunks)
    printer << " chunks " << chunks.getInt();
}

/// ` max`; nothing for a sum.
ParseResult shd::parseCombination(OpAsmParser &parser,
                                  CombinationAttr &combination) {
  auto value = Combination::Sum;
  if (succeeded(parser.parseOptionalKeyword("max")))
    value = Combination::Max;
  else if (succeeded(parser.parseOptionalKeyword("min")))
    value = Combination::Min;
  combination = CombinationAttr::get(parser.getContext(), value);
  return success();
}

void shd::printCombination(OpAsmPrinter &printer, Operation *,
                           CombinationAttr combination) {
  if (combination.getValue() != Combination::Sum)
    printer << ' ' << stringifyCombination(combination.getValue());
}

#define GET_OP_CLASSES
#include "shardc/Dialect/Shd/IR/ShdOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

using Names = SmallVector<StringRef, 4>;

static Names names(ArrayAttr list) {
  return llvm::to_vector<4>(list.getAsValueRange<StringAttr>());
}

static Names without(Names list, ArrayRef<StringRef> dropped) {
  llvm::erase_if(
      list, [&](StringRef name) { return llvm::is_contained(dropped, name); });
  return list;
}

/// The names of both lists, each once.
static Names unionOf(Names list, ArrayRef<StringRef> more) {
  for (StringRef name : more)
    if (!llvm::is_contained(list, name))
      list.push_back(name);
  return list;
}

/// `[B, D]`
static std::string listed(ArrayRef<StringRef> list) {
  return "[" + llvm::join(list, ", ") + "]";
}

/// Extent of an index of a type.
static int64_t extentOf(ArrayRef<StringRef> list, Type type, StringRef name) {
  return cast<RankedTensorType>(type).getDimSize(llvm::find(list, name) -
                                                 list.begin());
}

static LogicalResult verifySubset(Operation *op, ArrayRef<StringRef> part,
                                  ArrayRef<StringRef> whole, StringRef partOf,
                                  StringRef wholeOf, const OpPart &place = {}) {
  for (StringRef name : part)
    if (!llvm::is_contained(whole, name))
      return emitErrorAt(op, place)
             << "index '" << name << "' of " << partOf << " is not one of "
             << wholeOf << " " << listed(whole);
  return success();
}

static LogicalResult verifyHas(Operation *op, ArrayRef<StringRef> list,
                               StringRef name, StringRef listOf,
                               const OpPart &place = {}) {
  if (llvm::is_contained(list, name))
    return success();
  return emitErrorAt(op, place) << "index '" << name << "' is not one of "
                                << listOf << " " << listed(list);
}

/// The same names, in any order.
static LogicalResult verifySameNames(Operation *op, ArrayRef<StringRef> found,
                                     ArrayRef<StringRef> expected,
                                     StringRef what, const OpPart &place = {}) {
  bool same = found.size() == expected.size() &&
              llvm::all_of(expected, [&](StringRef name) {
                return llvm::is_contained(found, name);
              });
  if (same)
    return success();
  return emitErrorAt(op, place)
         << what << " must have the indices " << listed(expected) << ", found "
         << listed(found);
}

/// The result has the indices of operand 0, in their order.
static LogicalResult verifyKeepsIndices(ShardingRuleOpInterface op) {
  Names expected = op.getIndexing().getOperandIndices(0);
  Names found = op.getIndexing().getResultIndices(0);
  if (found == expected)
    return success();
  return emitErrorAt(op) << "the result must have the indices "
                         << listed(expected) << " of operand 0, found "
                         << listed(found);
}

static Type elementType(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static LogicalResult verifyIntegers(Operation *op, Value value, StringRef what,
                                    const OpPart &place = {}) {
  Type type = elementType(value);
  if (isa<IntegerType>(type) && !type.isInteger(1))
    return success();
  return emitErrorAt(op, place)
         << what << " must be integers, but are " << typeName(type);
}

/// The result has the element type of `operands`, the first of the operation.
static LogicalResult verifySameElementType(Operation *op, ValueRange operands) {
  Type expected = elementType(onlyResult(op));
  for (auto [i, operand] : llvm::enumerate(operands))
    if (elementType(operand) != expected)
      return emitErrorAt(op, int(i))
             << describeOperand(i) << " has element type "
             << typeName(elementType(operand)) << ", but the result has "
             << typeName(expected);
  return success();
}

//===----------------------------------------------------------------------===//
// Program structure
//===----------------------------------------------------------------------===//

/// One index per dimension.
static LogicalResult verifyIndexCount(Operation *op, ArrayAttr indices,
                                      RankedTensorType type) {
  if (indices.size() == size_t(type.getRank()))
    return success();
  return op->emitOpError() << "has " << indices.size()
                           << " indices for a tensor of " << type.getRank()
                           << " dimensions";
}

LogicalResult DeclareOp::verify() {
  // D1
  if (failed(verifyIndexCount(*this, getIndices(), getType())))
    return failure();
  // D2
  if (failed(shd::detail::verifyStacked(*this, getStacked(), getType(),
                                        getKind() == TensorKind::Input)))
    return failure();
  // D3
  if (ShardingAttr sharding = getSharding(getType());
      sharding && !sharding.getPartial().empty() &&
      getKind() != TensorKind::Gradient)
    return emitOpError() << "'" << getSym()
                         << "' may not be stored as a partial sum";
  // D4
  if (failed(shd::detail::verifyOfWeight(*this, getKind(), getSym(),
                                         getOf().has_value())))
    return failure();
  return verifyValueTypes(*this);
}

LogicalResult OutputOp::verify() {
  // O1
  if (failed(verifyIndexCount(*this, getIndices(), getValue().getType())))
    return failure();
  return verifyValueTypes(*this);
}

LogicalResult PartOp::verify() {
  // Q4, of a declaration in any dialect.
  Operation *source = getSource().getDefiningOp();
  auto kind =
      source ? source->getAttrOfType<TensorKindAttr>("kind") : TensorKindAttr();
  if (getAt().empty() && !(kind && isBuffer(kind.getValue())))
    return emitOpError() << "needs the number of an iteration";
  return shd::detail::verifyPartOf(*this, getSource(), getAt(), getType());
}

LogicalResult UpdateOp::verify() {
  // U1
  DeclareOp state = getDeclaration();
  if (!state || state.getKind() == TensorKind::Input)
    return emitOpError() << "is of a tensor that is no declared state";
  if (failed(shd::detail::verifyPartOf(*this, state, getAt(),
                                       getValue().getType())) ||
      // U2
      failed(shd::detail::verifyUpdatedOnce(
          *this, state.isBuffer(), getStateMutable(), getAt(), state.getSym())))
    return failure();
  return verifyValueTypes(*this);
}

static LogicalResult verifyCarried(RepeatOp op, StringRef what,
                                   TypeRange types) {
  TypeRange inits = op.getInits().getTypes();
  if (types.size() != inits.size())
    return op.emitOpError() << "carries " << inits.size() << " values, but has "
                            << types.size() << " " << what;
  for (auto [i, type, init] : llvm::enumerate(types, inits))
    if (type != init)
      return op.emitOpError() << "carried value " << i << " has type " << init
                              << ", but among the " << what << " " << type;
  return success();
}

LogicalResult RepeatOp::verify() {
  // R1
  if (getCount() < 1)
    return emitOpError() << "must run at least once, but runs " << getCount()
                         << " times";
  Block &body = getBody().front();
  // R3
  Type number = RankedTensorType::get({}, IntegerType::get(getContext(), 32));
  if (body.getNumArguments() == 0 || body.getArgument(0).getType() != number)
    return emitOpError() << "must have the iteration's number, of type "
                         << number << ", as first block argument";
  // R2
  auto yield = dyn_cast_if_present<YieldOp>(
      body.mightHaveTerminator() ? body.getTerminator() : nullptr);
  if (!yield)
    return emitOpError() << "must end in a 'shd.yield'";
  ArrayRef<BlockArgument> carried = body.getArguments();
  if (failed(verifyCarried(*this, "block arguments",
                           ValueRange(carried.drop_front()).getTypes())) ||
      failed(verifyCarried(*this, "yielded values",
                           yield.getValues().getTypes())) ||
      failed(verifyCarried(*this, "results", getResultTypes())))
    return failure();
  return verifyValueTypes(*this);
}

LogicalResult ConstantOp::verify() {
  // Z1
  if (getType().getRank() != 0)
    return emitOpError() << "must be a scalar, but has " << getType().getRank()
                         << " dimensions";
  return success();
}

double shd::inverseOf(ArrayRef<int64_t> extents) {
  double product = 1;
  for (int64_t extent : extents)
    product *= double(extent);
  return 1 / product;
}

void shd::setInverseOf(ConstantOp op, ArrayRef<int64_t> extents) {
  Builder builder(op.getContext());
  op->setAttr(kInverseOf, builder.getDenseI64ArrayAttr(extents));
  RankedTensorType type = op.getType();
  op.setValueAttr(DenseElementsAttr::get(
      type, Attribute(builder.getFloatAttr(type.getElementType(),
                                           inverseOf(extents)))));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::verify() {
  Names operands = unionOf(getIndexing().getOperandIndices(0),
                           getIndexing().getOperandIndices(1));
  Names result = getIndexing().getResultIndices(0);
  // E1
  if (failed(
          verifySubset(*this, result, operands, "the result", "the operands'")))
    return failure();
  // E2
  if (result.size() == operands.size())
    return emitOpError() << "sums no index; a product without one is "
                         << "elementwise";
  return success();
}

static unsigned numOperandsOf(Function function) {
  switch (function) {
  case Function::Add:
  case Function::Sub:
  case Function::Mul:
  case Function::Div:
  case Function::Rem:
  case Function::Maximum:
  case Function::Minimum:
  case Function::Eq:
  case Function::Ne:
  case Function::Lt:
  case Function::Le:
  case Function::Gt:
  case Function::Ge:
    return 2;
  case Function::Where:
    return 3;
  default:
    return 1;
  }
}

static bool isComparison(Function function) {
  return function >= Function::Eq && function <= Function::Ge;
}

StringRef ElementwiseOp::getFunctionName() {
  return stringifyFunction(getFunction());
}

LogicalResult ElementwiseOp::verify() {
  // W1
  Names result = getIndexing().getResultIndices(0);
  for (unsigned i = 0; i < getInputs().size(); ++i)
    if (failed(verifySubset(*this, getIndexing().getOperandIndices(i), result,
                            describeOperand(i), "the result's")))
      return failure();
  // W2
  unsigned needed = numOperandsOf(getFunction());
  if (getInputs().size() != needed)
    return emitOpError() << "'" << stringifyFunction(getFunction())
                         << "' takes " << needed << " operands, but has "
                         << getInputs().size();
  // W3
  if (isComparison(getFunction()) && !elementType(getResult()).isInteger(1))
    return emitOpError() << "'" << stringifyFunction(getFunction())
                         << "' must give bool, but gives "
                         << typeName(elementType(getResult()));
  if (getFunction() == Function::Where &&
      !elementType(getInputs().front()).isInteger(1)) {
    InFlightDiagnostic error =
        emitErrorAt(*this, 0)
        << "the condition of 'where' must be bool, but is "
        << typeName(elementType(getInputs().front()));
    error.attachNote() << "compare it, for example `x != 0`";
    return error;
  }
  // W4
  if (getFunction() == Function::Rem)
    for (Value value : {getInputs()[0], getInputs()[1], Value(getResult())})
      if (failed(verifyIntegers(*this, value, "the operands of '%'", 0)))
        return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and normalisations
//===----------------------------------------------------------------------===//

StringRef ReduceOp::getFunctionName() { return stringifyReduction(getKind()); }

LogicalResult ReduceOp::verify() {
  // X1
  return verifySubset(*this, getIndexing().getResultIndices(0),
                      getIndexing().getOperandIndices(0), "the result",
                      "the argument's");
}

/// Inputs that a normalisation may have, scale and bias included.
static unsigned maxInputs(Normalization kind) {
  switch (kind) {
  case Normalization::Softmax:
  case Normalization::LogSumExp:
    return 1;
  case Normalization::RmsNorm:
    return 2;
  case Normalization::LayerNorm:
    return 3;
  }
  llvm_unreachable("a new normalisation");
}

StringRef NormalizeOp::getFunctionName() {
  return stringifyNormalization(getKind());
}

LogicalResult NormalizeOp::verify() {
  // N3
  unsigned most = maxInputs(getKind());
  if (getInputs().empty() || getInputs().size() > most)
    return emitOpError() << "'" << stringifyNormalization(getKind())
                         << "' takes 1 to " << most << " operands, but has "
                         << getInputs().size();
  // N1
  Names input = getIndexing().getOperandIndices(0), over = names(getOver());
  for (StringRef name : over)
    if (failed(verifyHas(*this, input, name, "the argument's", 0)))
      return failure();
  // N4
  for (unsigned i = 1; i < getInputs().size(); ++i)
    if (failed(verifySubset(*this, getIndexing().getOperandIndices(i), input,
                            i == 1 ? "the scale" : "the bias", "the argument's",
                            i)))
      return failure();
  // N2
  bool drops = getKind() == Normalization::LogSumExp;
  return verifySameNames(*this, getIndexing().getResultIndices(0),
                         drops ? without(input, over) : input, "the result");
}

LogicalResult CrossEntropyOp::verify() {
  Names logits = getIndexing().getOperandIndices(0);
  Names labels = getIndexing().getOperandIndices(1);
  // L1
  if (failed(verifyHas(*this, logits, getClasses(), "the logits'", 0)))
    return failure();
  // L2
  Names others = without(logits, getClasses());
  if (failed(verifyIntegers(*this, getLabels(), "labels", 1)) ||
      failed(verifySameNames(*this, labels, others, "the labels", 1)))
    return failure();
  if (failed(verifySameNames(*this, getIndexing().getResultIndices(0), others,
                             "the result")))
    return failure();
  // L3
  int64_t chunks = getRowChunks();
  if (chunks < 0 && chunks != kAllChunks)
    return emitOpError() << "expects a positive number of chunks or 'all', got "
                         << chunks;
  return success();
}

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

/// T1 and T2
static LogicalResult verifyScores(AttentionOpInterface op, const Names &q,
                                  const Names &k, const Names &v) {
  StringRef head = op.getHead(), key = op.getKey();
  constexpr int onQ = AttentionOp::kQueryOperand;
  constexpr int onK = AttentionOp::kKeyOperand;
  constexpr int onV = AttentionOp::kValueOperand;
  // T1
  if (failed(verifyHas(op, q, head, "q's", onQ)) ||
      failed(verifyHas(op, k, head, "k's", onK)) ||
      failed(verifyHas(op, k, key, "k's", onK)) ||
      failed(verifyHas(op, v, key, "v's", onV)))
    return failure();
  if (llvm::is_contained(q, key)) {
    InFlightDiagnostic error = emitErrorAt(op, onQ)
                               << "q has the index '" << key << "' of the keys";
    error.attachNote()
        << "give the keys an index of their own, for example `dim S = T`";
    return error;
  }
  // T2
  if (failed(verifySubset(op, without(k, key), q, "k", "q's", onK)))
    return failure();
  for (StringRef name : v)
    if (llvm::is_contained(q, name) && !llvm::is_contained(k, name))
      return emitErrorAt(op, onV)
             << "index '" << name << "' of v is one of q's, but not of k's";
  return success();
}

/// T3, T4 and T9
static LogicalResult verifyMask(AttentionOpInterface op, const Names &q,
                                const Names &k) {
  // T3
  if (std::optional<uint64_t> window = op.getWindow()) {
    if (int64_t(*window) < 1)
      return emitErrorAt(op, "window")
             << "'window' must be at least 1, but is " << int64_t(*window);
    if (!op.getCausal())
      return op->emitOpError() << "a window needs 'causal'";
  }
  // T4
  if (op.getQuery() && op.getAt())
    return op->emitOpError() << "has both positions and the index '"
                             << *op.getQuery() << "' along which they run";
  if (op.getCausal() && !op.getQuery() && !op.getAt())
    return op->emitOpError() << "'causal' needs positions or the index along "
                             << "which they run";
  if (auto query = op.getQuery()) {
    if (failed(verifyHas(op, q, *query, "q's")))
      return failure();
    if (llvm::is_contained(k, *query))
      return op->emitOpError() << "index '" << *query
                               << "', along which queries run, is one of k's";
  }
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  auto indicesOf = [&](unsigned operand) {
    return indexed.getIndexing().getOperandIndices(operand);
  };
  if (op.getAt() &&
      (failed(verifyIntegers(op, op.getAt(), "positions", op.getAtOperand())) ||
       failed(verifySubset(op, indicesOf(op.getAtOperand()),
                           without(q, op.getHead()), "the positions", "q's",
                           op.getAtOperand()))))
    return failure();
  // T9
  if (!op.getKeyAt())
    return success();
  int place = op.getKeyAtOperand();
  if (!op.getCausal())
    return emitErrorAt(op, place)
           << "'key_at' masks keys, which needs `causal=true`";
  Names positions = indicesOf(place);
  if (failed(verifyIntegers(op, op.getKeyAt(), "positions of keys", place)) ||
      failed(verifyHas(op, positions, op.getKey(), "key_at's", place)))
    return failure();
  return verifySubset(op, positions, without(k, op.getHead()), "'key_at'",
                      "k's", place);
}

/// T7 and T8: floats that join the scores.
static LogicalResult verifyScoreTensor(ShardingRuleOpInterface op, int operand,
                                       const Names &allowed, StringRef what,
                                       StringRef allowedOf) {
  Type type = elementType(op->getOperand(operand));
  if (!isa<FloatType>(type))
    return emitErrorAt(op, operand)
           << what << " expects floats, found " << typeName(type);
  return verifySubset(op, op.getIndexing().getOperandIndices(operand), allowed,
                      what, allowedOf, operand);
}

/// T8
static LogicalResult verifyBias(AttentionOpInterface op, const Names &q) {
  if (!op.getBias())
    return success();
  return verifyScoreTensor(cast<ShardingRuleOpInterface>(op.getOperation()),
                           op.getBiasOperand(),
                           unionOf(without(q, op.getHead()), {op.getKey()}),
                           "'bias'", "the scores'");
}

/// T6
static LogicalResult verifyLogSumExp(Operation *op, Value value,
                                     ArrayRef<StringRef> found,
                                     ArrayRef<StringRef> expected) {
  if (!elementType(value).isF32())
    return op->emitOpError() << "the logsumexp must be f32, but is "
                             << typeName(elementType(value));
  return verifySameNames(op, found, expected, "the logsumexp");
}

LogicalResult AttentionOp::verify() {
  Names q = getIndexing().getOperandIndices(kQueryOperand);
  Names k = getIndexing().getOperandIndices(kKeyOperand);
  Names v = getIndexing().getOperandIndices(kValueOperand);
  if (failed(verifyScores(*this, q, k, v)) || failed(verifyMask(*this, q, k)))
    return failure();
  // T5
  Names queries = without(q, getHead());
  if (failed(verifySameNames(*this, getIndexing().getResultIndices(0),
                             unionOf(queries, without(v, getKey())),
                             describeResult(*this, 0))))
    return failure();
  // T7
  if (getSink() && failed(verifyScoreTensor(*this, getSinkOperand(), queries,
                                            "'sink'", "the queries'")))
    return failure();
  // T8
  if (failed(verifyBias(*this, q)))
    return failure();
  // T6
  if (!getLogsumexp())
    return success();
  return verifyLogSumExp(*this, getLogsumexp(),
                         getIndexing().getResultIndices(1), queries);
}

/// The same names in the same order.
static LogicalResult verifySameList(Operation *op, const Names &found,
                                    const Names &expected, const Twine &what) {
  if (found == expected)
    return success();
  return op->emitOpError() << what << " must have the indices "
                           << listed(expected) << ", in this order, found "
                           << listed(found);
}

LogicalResult AttentionGradOp::verify() {
  IndexingAttr indexing = getIndexing();
  Names q = indexing.getOperandIndices(kQueryOperand);
  Names k = indexing.getOperandIndices(kKeyOperand);
  Names v = indexing.getOperandIndices(kValueOperand);
  // B1 and B4
  if (failed(verifyScores(*this, q, k, v)) || failed(verifyMask(*this, q, k)) ||
      failed(verifyBias(*this, q)))
    return failure();
  // B2
  Names queries = without(q, getHead());
  Names output = indexing.getOperandIndices(kOutputOperand);
  if (failed(verifySameNames(*this, output,
                             unionOf(queries, without(v, getKey())),
                             describeOperand(kOutputOperand))) ||
      failed(verifySameList(*this, indexing.getOperandIndices(kGradientOperand),
                            output, describeOperand(kGradientOperand))) ||
      failed(verifyLogSumExp(*this, getLogsumexp(),
                             indexing.getOperandIndices(kLogSumExpOperand),
                             queries)))
    return failure();
  // B3
  for (unsigned i : {kQueryOperand, kKeyOperand, kValueOperand})
    if (failed(verifySameList(*this, indexing.getResultIndices(i),
                              indexing.getOperandIndices(i),
                              describeResult(*this, i))))
      return failure();
  if (!getDbias())
    return success();
  // B4
  if (!getBias())
    return emitOpError() << "has the gradient of a bias, but no bias";
  return verifySameList(*this, indexing.getResultIndices(kBiasResult),
                        indexing.getOperandIndices(getBiasOperand()),
                        describeResult(*this, kBiasResult));
}

LogicalResult RopeOp::verify() {
  Names input = getIndexing().getOperandIndices(0);
  // P1
  if (failed(verifyHas(*this, input, getHead(), "the argument's", 0)))
    return failure();
  if (int64_t extent = extentOf(input, getInput().getType(), getHead());
      extent % 2 != 0)
    return emitErrorAt(*this)
           << "'rope' pairs the elements of '" << getHead()
           << "', so its extent must be even, but is " << extent;
  // P2
  if (getAt() ? getPositions().has_value() : !getPositions().has_value())
    return emitErrorAt(*this) << "'rope' takes positions either along an "
                                 "index, `rope[T, H](x)`, or from a tensor, "
                                 "`rope[H](x, at=p)`";
  if (getPositions() &&
      failed(verifyHas(*this, input, *getPositions(), "the argument's", 0)))
    return failure();
  if (getAt() && (failed(verifyIntegers(*this, getAt(), "positions", 1)) ||
                  failed(verifySubset(*this, getIndexing().getOperandIndices(1),
                                      without(input, getHead()),
                                      "the positions", "the argument's", 1))))
    return failure();
  // P3
  return verifySameNames(*this, getIndexing().getResultIndices(0), input,
                         "the result");
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// One dimension of the table (called `tableName`) per position tensor; fills
/// the indices that are left of the table and those of the positions.
static LogicalResult verifyPositions(ShardingRuleOpInterface op,
                                     const Names &table, StringRef tableName,
                                     ArrayRef<int64_t> dims,
                                     OperandRange positions, Names &remaining) {
  if (positions.empty())
    return op->emitOpError() << "needs positions";
  if (dims.size() != positions.size())
    return op->emitOpError() << "has " << dims.size() << " dimensions for "
                             << positions.size() << " tensors of positions";
  Names gathered;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= int64_t(table.size()))
      return op->emitOpError() << "dimension " << dim << " is not one of the "
                               << table.size() << " of " << tableName;
    if (llvm::is_contained(gathered, table[dim]))
      return op->emitOpError() << "dimension " << dim << " appears twice";
    gathered.push_back(table[dim]);
  }
  remaining = without(table, gathered);
  unsigned first = positions.getBeginOperandIndex();
  for (auto [i, position] : llvm::enumerate(positions))
    if (failed(verifyIntegers(op, position, "positions", first + i)))
      return failure();
  for (unsigned i = 0; i < positions.size(); ++i)
    remaining =
        unionOf(remaining, op.getIndexing().getOperandIndices(first + i));
  for (StringRef name : gathered)
    if (llvm::is_contained(remaining, name))
      return op->emitOpError() << "index '" << name
                               << "', which positions replace, is also one of "
                               << "the positions'";
  return success();
}

LogicalResult GatherOp::verify() {
  // G1
  Names remaining;
  if (failed(verifyPositions(*this, getIndexing().getOperandIndices(0),
                             describeOperand(0), getDims(), getPositions(),
                             remaining)))
    return failure();
  // G2
  if (failed(verifySameElementType(*this, getTable())))
    return failure();
  return verifySameNames(*this, getIndexing().getResultIndices(0), remaining,
                         "the result");
}

/// Those of the update.
SmallVector<StringRef, 4> ScatterOp::getWrittenIndices() {
  return getIndexing().getOperandIndices(1);
}

LogicalResult ScatterOp::verify() {
  // C1
  Names remaining;
  if (failed(verifyPositions(*this, getIndexing().getOperandIndices(0),
                             describeOperand(0), getDims(), getPositions(),
                             remaining)) ||
      failed(verifySameNames(*this, getIndexing().getOperandIndices(1),
                             remaining, "operand 1")))
    return failure();
  if (failed(verifySameElementType(*this, {getDestination(), getUpdate()})))
    return failure();
  // C2
  return verifyKeepsIndices(*this);
}

Value ScatterSumOp::getPositioned() { return getResult(); }

LogicalResult ScatterSumOp::verify() {
  // Y1
  Names remaining;
  if (failed(verifyPositions(*this, getIndexing().getResultIndices(0),
                             describeResult(*this, 0), getDims(),
                             getPositions(), remaining)))
    return failure();
  // Y2
  return verifySameNames(*this, getIndexing().getOperandIndices(0), remaining,
                         "operand 0");
}

/// The first `tensors` operands and all results have the same indices, the
/// other operands none.
template <typename Op>
static LogicalResult verifyOptimizer(Op op, unsigned tensors) {
  Names names = op.getIndexing().getOperandIndices(0);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (op.getIndexing().getOperandIndices(i) !=
        (i < tensors ? names : Names()))
      return op.emitOpError()
             << describeOperand(i) << " must have the indices of "
             << (i < tensors ? "operand 0" : "a scalar");
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (op.getIndexing().getResultIndices(i) != names)
      return op.emitOpError()
             << "result " << i << " must have the indices of operand 0";
  return success();
}

// O2: gradient, weight and both moments.
LogicalResult AdamWOp::verify() { return verifyOptimizer(*this, 4); }

LogicalResult SgdOp::verify() {
  // O4
  unsigned least = getMomentum() ? 2 : 1, found = (*this)->getNumResults();
  if (found < least || found > least + 1)
    return emitOpError() << "the number of results is " << found
                         << ", but must be " << least << " or " << least + 1;
  // O3
  return verifyOptimizer(*this, getMomentum() ? 3 : 2);
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// k picks among the elements of an index.
static LogicalResult verifyK(Operation *op, int64_t k, StringRef index,
                             int64_t extent) {
  if (k >= 1 && k <= extent)
    return success();
  return emitErrorAt(op, "k") << "k is " << k << ", but must be from 1 to "
                              << extent << ", the extent of '" << index << "'";
}

LogicalResult TopKOp::verify() {
  Names input = getIndexing().getOperandIndices(0);
  // A1
  if (failed(verifyHas(*this, input, getOver(), "the argument's", 0)) ||
      failed(verifyK(*this, getK(), getOver(),
                     extentOf(input, getInput().getType(), getOver()))))
    return failure();
  // A2
  if (!elementType(getResult()).isInteger(1))
    return emitOpError() << "the result must be bool, but is "
                         << typeName(elementType(getResult()));
  return verifySameNames(*this, getIndexing().getResultIndices(0), input,
                         "the result");
}

/// G5 and G6
template <typename Op>
static LogicalResult verifyExpertCounts(Op op, ArrayRef<StringRef> picks) {
  int64_t experts = extentOf(picks, op.getPicks().getType(), op.getExperts());
  if (failed(verifyK(op, op.getK(), op.getExperts(), experts)))
    return failure();
  if (op.getBlocks().has_value() != op.getLimit().has_value())
    return emitErrorAt(op) << "'blocks' and 'limit' belong together";
  if (op.getBlocks()) {
    int64_t blocks = *op.getBlocks(), limit = *op.getLimit();
    if (blocks < 1 || experts % blocks != 0)
      return emitErrorAt(op, "blocks")
             << "'blocks' is " << blocks << ", which does not divide the "
             << experts << " of '" << op.getExperts() << "'";
    if (limit < 1 || limit > blocks)
      return emitErrorAt(op, "limit")
             << "'limit' is " << limit << ", but must be from 1 to " << blocks
             << ", the number of blocks";
    int64_t most = limit * (experts / blocks);
    if (most < int64_t(op.getK()))
      return emitErrorAt(op, "limit")
             << "k is " << op.getK() << ", but only " << most << " of '"
             << op.getExperts() << "' are in " << limit << " of " << blocks
             << " blocks";
  }
  if (!op.getImbalance())
    return success();
  if (!op.getDropless()) {
    InFlightDiagnostic error = emitErrorAt(op, "imbalance")
                               << "'imbalance' needs 'dropless=true'";
    error.attachNote() << "without it every slot of '" << op.getSlots()
                       << "' is executed, and the surplus is dropped";
    return error;
  }
  if (op.getImbalance()->convertToDouble() >= 1)
    return success();
  return emitErrorAt(op, "imbalance")
         << "'imbalance' must be at least 1, but is "
         << llvm::formatv("{0}", op.getImbalance()->convertToDouble()).str();
}

/// Tokens and experts are those of the picks, or a device's part of them.
static LogicalResult verifyWholePicks(ExpertsOpInterface op,
                                      ArrayRef<StringRef> picks) {
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  auto typeOf = [&](unsigned tensor) {
    unsigned operands = op->getNumOperands();
    return tensor < operands ? op->getOperand(tensor).getType()
                             : op->getResult(tensor - operands).getType();
  };
  for (auto [tensor, what] : {std::pair(op.getTokensTensor(), "the tokens"),
                              std::pair(op.getSlotsTensor(), "the slots")}) {
    Names names = indicesOf(indexed, tensor);
    for (StringRef name : picks) {
      if (!llvm::is_contained(names, name))
        continue;
      int64_t expected = extentOf(picks, op.getPicks().getType(), name);
      int64_t found = extentOf(names, typeOf(tensor), name);
      if (found > expected)
        return emitErrorAt(op, tensor)
               << "index '" << name << "' has extent " << found << " in "
               << what << ", but " << expected << " in the picks";
    }
  }
  return success();
}

/// G3 to G6
template <typename Op> static LogicalResult verifyExperts(Op op) {
  // G3
  Names picks = indicesOf(op, kPicksOperand);
  Type pickType = elementType(op.getPicks());
  if (!pickType.isInteger(1)) {
    InFlightDiagnostic error = emitErrorAt(op, kPicksOperand)
                               << "picks must be bool, but are "
                               << typeName(pickType);
    error.attachNote() << "compare them, for example `p != 0`, or pick the k "
                          "largest by `topk`";
    return error;
  }
  int tokens = op.getTokensTensor(), slots = op.getSlotsTensor();
  Names all = indicesOf(op, tokens);
  if (failed(
          verifyHas(op, picks, op.getExperts(), "the picks'", kPicksOperand)))
    return failure();
  for (auto [name, what] : {std::pair(op.getExperts(), "experts"),
                            std::pair(op.getSlots(), "slots")})
    if (llvm::is_contained(all, name))
      return emitErrorAt(op, tokens) << "index '" << name << "' of the " << what
                                     << " is one of the tokens, too";
  if (llvm::is_contained(picks, op.getSlots()))
    return emitErrorAt(op, kPicksOperand)
           << "index '" << op.getSlots()
           << "' of the slots is one of the picks, too";
  if (failed(verifySubset(op, without(picks, op.getExperts()), all, "the picks",
                          "the tokens'", kPicksOperand)))
    return failure();
  // G4
  ExpertIndices indices = ExpertIndices::of(op);
  Names expected = {op.getExperts()};
  llvm::append_range(expected, indices.groups);
  expected.push_back(op.getSlots());
  llvm::append_range(expected, indices.features);
  if (failed(verifySameNames(op, indicesOf(op, slots), expected, "the slots",
                             slots)))
    return failure();
  if (std::optional<unsigned> weights = op.getWeightsTensor())
    if (failed(verifySameNames(op, indicesOf(op, *weights), picks,
                               "the weights", *weights)))
      return failure();
  if (failed(verifyWholePicks(op, picks)))
    return failure();
  return verifyExpertCounts(op, picks);
}

LogicalResult DispatchOp::verify() { return verifyExperts(*this); }

LogicalResult CombineOp::verify() { return verifyExperts(*this); }

LogicalResult CombineGradOp::verify() { return verifyExperts(*this); }

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

/// `whole` in `wholeType` against `parts` in `partsType`: extents multiply.
static LogicalResult verifyProduct(Operation *op, StringRef whole,
                                   ArrayRef<StringRef> wholeNames,
                                   Type wholeType, ArrayRef<StringRef> parts,
                                   ArrayRef<StringRef> partNames,
                                   Type partsType) {
  int64_t expected = extentOf(wholeNames, wholeType, whole);
  int64_t product = 1;
  bool overflow = false;
  for (StringRef part : parts)
    overflow |= llvm::MulOverflow(product, extentOf(partNames, partsType, part),
                                  product);
  if (!overflow && product == expected)
    return success();
  InFlightDiagnostic error = emitErrorAt(op, "parts");
  error << "the extents of " << listed(parts) << " multiply to ";
  if (overflow)
    error << "more than fits";
  else
    error << product;
  return error << ", but '" << whole << "' has extent " << expected;
}

/// `parts` names indices of a tensor, each once and at least one.
static LogicalResult verifyParts(Operation *op, ArrayRef<StringRef> parts,
                                 ArrayRef<StringRef> list, StringRef listOf) {
  if (parts.empty())
    return op->emitOpError() << "needs at least one part";
  for (auto [i, part] : llvm::enumerate(parts))
    if (llvm::is_contained(parts.take_front(i), part))
      return op->emitOpError() << "part '" << part << "' appears twice";
  return verifySubset(op, parts, list, "the parts", listOf);
}

LogicalResult SplitOp::verify() {
  Names input = getIndexing().getOperandIndices(0);
  Names result = getIndexing().getResultIndices(0), parts = names(getParts());
  // K2
  if (failed(verifyHas(*this, input, getWhole(), "the argument's", 0)) ||
      failed(verifyParts(*this, parts, result, "the result's")) ||
      failed(verifySameNames(*this, result,
                             unionOf(without(input, getWhole()), parts),
                             "the result")))
    return failure();
  // K1
  if (failed(verifyProduct(*this, getWhole(), input, getInput().getType(),
                           parts, result, getType())))
    return failure();
  return verifySameElementType(*this, (*this)->getOperands());
}

LogicalResult MergeOp::verify() {
  Names input = getIndexing().getOperandIndices(0);
  Names result = getIndexing().getResultIndices(0), parts = names(getParts());
  // M2
  if (failed(verifyParts(*this, parts, input, "the argument's")) ||
      failed(verifyHas(*this, result, getWhole(), "the result's")) ||
      failed(verifySameNames(*this, result,
                             unionOf(without(input, parts), getWhole()),
                             "the result")))
    return failure();
  // M1
  if (failed(verifyProduct(*this, getWhole(), result, getType(), parts, input,
                           getInput().getType())))
    return failure();
  return verifySameElementType(*this, (*this)->getOperands());
}

LogicalResult SliceOp::verify() {
  Names input = getIndexing().getOperandIndices(0);
  Names result = getIndexing().getResultIndices(0);
  // S2
  if (failed(verifyHas(*this, input, getWhole(), "the argument's", 0)) ||
      failed(verifyHas(*this, result, getPart(), "the result's")) ||
      failed(verifySameNames(*this, result,
                             unionOf(without(input, getWhole()), getPart()),
                             "the result")))
    return failure();
  // S1
  int64_t whole = extentOf(input, getInput().getType(), getWhole());
  int64_t part = extentOf(result, getType(), getPart());
  ArrayRef<int64_t> range = getRange();
  if (range.size() != 2)
    return emitOpError() << "a range must have 2 bounds, but has "
                         << range.size();
  if (range[0] < 0 || range[1] > whole || range[0] >= range[1])
    return emitErrorAt(*this, "range")
           << "the range " << range[0] << ".." << range[1]
           << " is empty or outside of '" << getWhole() << "', whose extent is "
           << whole;
  if (range[1] - range[0] != part) {
    InFlightDiagnostic error = emitErrorAt(*this, "range")
                               << "the range " << range[0] << ".." << range[1]
                               << " has " << range[1] - range[0]
                               << " elements, but '" << getPart()
                               << "' has extent " << part;
    if (getPart() == getWhole())
      error.attachNote() << "name the part: `slice[I: lo..hi -> J](x)`";
    return error;
  }
  return verifySameElementType(*this, (*this)->getOperands());
}

LogicalResult ConcatOp::verify() {
  Names result = getIndexing().getResultIndices(0), parts = names(getParts());
  // J1
  if (getInputs().empty() || parts.size() != getInputs().size())
    return emitOpError() << "has " << parts.size() << " parts for "
                         << getInputs().size() << " operands";
  // J2
  for (auto [i, part] : llvm::enumerate(parts))
    if (failed(verifyHas(*this, getIndexing().getOperandIndices(i), part,
                         describeOperand(i) + "'s", i)))
      return failure();
  if (failed(verifyHas(*this, result, getWhole(), "the result's")))
    return failure();
  int64_t sum = 0;
  bool overflow = false;
  for (auto [i, part] : llvm::enumerate(parts)) {
    Names operand = getIndexing().getOperandIndices(i);
    if (failed(verifySameNames(*this, operand,
                               unionOf(without(result, getWhole()), part),
                               describeOperand(i), i)))
      return failure();
    int64_t extent = extentOf(operand, getInputs()[i].getType(), part);
    overflow |= llvm::AddOverflow(sum, extent, sum);
  }
  // J1
  int64_t whole = extentOf(result, getType(), getWhole());
  if (overflow || sum != whole)
    return emitErrorAt(*this, "parts")
           << "the extents of " << listed(parts) << " add up to " << sum
           << ", but '" << getWhole() << "' has extent " << whole;
  return verifySameElementType(*this, (*this)->getOperands());
}

LogicalResult IotaOp::verify() {
  // V1
  if (getType().getRank() != 1)
    return emitOpError() << "must have one dimension, but has "
                         << getType().getRank();
  return verifyIntegers(*this, getResult(), "elements");
}

LogicalResult ReshardOp::verify() {
  // H1
  if (failed(verifyKeepsIndices(*this)))
    return failure();
  return verifySameElementType(*this, (*this)->getOperands());
}

//===----------------------------------------------------------------------===//
// Explicit communication
//===----------------------------------------------------------------------===//

LogicalResult StatisticOp::verify() { return verifyValueTypes(*this); }

/// Axes and layouts of a collective, both of whose types must have one, and
/// whether it turns the one into the other.
static LogicalResult verifyCollective(Operation *op, ArrayAttr axisNames) {
  if (failed(verifyValueTypes(op)))
    return failure();
  MeshContext context(op);
  if (!context.mesh)
    return op->emitOpError() << "needs a mesh";
  std::optional<Layout> from =
      layoutOf(*context.mesh, op->getOperand(0).getType());
  std::optional<Layout> to = layoutOf(*context.mesh, onlyResult(op).getType());
  if (!from || !to)
    return op->emitOpError() << "needs shardings on its types";
  return shd::detail::verifyMovement(op, *context.mesh, collectiveKind(op),
                                     *from, *to, axisNames);
}

LogicalResult shd::detail::verifyMovement(Operation *op, const Mesh &mesh,
                                          CollectiveKind kind,
                                          const Layout &from, const Layout &to,
                                          ArrayAttr axisNames) {
  AxisSet axes = 0;
  for (StringRef name : axisNames.getAsValueRange<StringAttr>()) {
    std::optional<AxisIndex> axis = mesh.find(name);
    if (!axis)
      return op->emitOpError()
             << "axis '" << name << "' is not one of the mesh";
    if (axes & axisBit(*axis))
      return op->emitOpError() << "axis '" << name << "' appears twice";
    axes |= axisBit(*axis);
  }
  if (performs(mesh, kind, from, to, axes))
    return success();
  SmallVector<std::string> dims;
  for (unsigned i = 0; i < from.rank(); ++i)
    dims.push_back(std::to_string(i));
  return op->emitOpError() << "does not turn " << toString(mesh, from, dims)
                           << " into " << toString(mesh, to, dims)
                           << " over axes " << listed(names(axisNames));
}

LogicalResult AllGatherOp::verify() {
  return verifyCollective(*this, getAxes());
}
LogicalResult AllSliceOp::verify() {
  return verifyCollective(*this, getAxes());
}
LogicalResult AllToAllOp::verify() {
  return verifyCollective(*this, getAxes());
}
LogicalResult ReduceScatterOp::verify() {
  return verifyCollective(*this, getAxes());
}
LogicalResult AllReduceOp::verify() {
  return verifyCollective(*this, getAxes());
}
LogicalResult CollectivePermuteOp::verify() {
  return verifyCollective(*this, getAxes());
}

/// Z1 to Z4, for both dialects.
LogicalResult shd::detail::verifyHalo(Operation *op, const Mesh &mesh,
                                      CollectiveKind kind,
                                      ArrayRef<int64_t> shape,
                                      const Layout &from, const Layout &to,
                                      int64_t dim, int64_t rows,
                                      ArrayAttr axisNames) {
  // Z1
  if (dim < 0 || dim >= int64_t(shape.size()))
    return op->emitOpError()
           << "dimension " << dim << " is not one of " << shape.size();
  if (failed(verifyMovement(op, mesh, kind, from, to, axisNames)))
    return failure();
  AxisList axes;
  for (StringRef name : axisNames.getAsValueRange<StringAttr>())
    axes.push_back(*mesh.find(name));
  bool isExchange = kind == CollectiveKind::HaloExchange;
  if ((isExchange ? from : to).dims[dim] != axes ||
      !(isExchange ? to : from).dims[dim].empty())
    return op->emitOpError() << "must be over all axes of dimension " << dim
                             << ", in their order";
  // Z3
  int64_t parts = mesh.groupSize(ArrayRef(axes));
  if (shape[dim] % parts != 0)
    return op->emitOpError() << "needs even parts, but " << parts
                             << " devices share " << shape[dim] << " rows";
  // Z4
  int64_t dealt = haloDealt(op);
  if (dealt > 1 && (dealt % parts != 0 || shape[dim] % (2 * dealt) != 0))
    return op->emitOpError()
           << "needs whole pairs of chunks, but " << parts << " devices share "
           << shape[dim] << " rows dealt to " << dealt;
  // Z2
  int64_t stretch = shape[dim] / parts / stretchesOfPart(dealt);
  if (rows < 1 || rows > stretch)
    return op->emitOpError()
           << "takes " << rows << " rows of "
           << (dealt > 1 ? "a chunk of " : "a part of ") << stretch;
  return success();
}

template <typename Op> static LogicalResult verifyHalo(Op op) {
  if (failed(verifyValueTypes(op)))
    return failure();
  MeshContext context(op);
  if (!context.mesh)
    return op.emitOpError() << "needs a mesh";
  auto type = cast<RankedTensorType>(op.getInput().getType());
  std::optional<Layout> from = layoutOf(*context.mesh, type);
  std::optional<Layout> to = layoutOf(*context.mesh, op.getResult().getType());
  if (!from || !to)
    return op.emitOpError() << "needs shardings on its types";
  return shd::detail::verifyHalo(op, *context.mesh, collectiveKind(op),
                                 type.getShape(), *from, *to, op.getDim(),
                                 op.getRows(), op.getAxes());
}

LogicalResult HaloExchangeOp::verify() { return verifyHalo(*this); }
LogicalResult HaloReduceOp::verify() { return verifyHalo(*this); }

/// A device moves its own part, on a mesh or without one.
static LogicalResult verifyHostTransfer(Operation *op, ArrayAttr axes) {
  if (axes.empty() && op->getOperand(0).getType() == onlyResult(op).getType())
    return success();
  return op->emitOpError()
         << "moves a device's own part: over no axes, in one layout";
}

LogicalResult ToHostOp::verify() {
  return verifyHostTransfer(*this, getAxes());
}
LogicalResult FromHostOp::verify() {
  return verifyHostTransfer(*this, getAxes());
}
