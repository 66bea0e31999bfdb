//===- ShdToSpmd.cpp - convert-shd-to-spmd --------------------------------===//
//
// Types become those of one device's parts; operations keep their operands. The
// collectives turn into those of the spmd dialect; computing operations stay
// and say which part of each sharded index they work on.
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/DialectConversion.h"
#include "shardc/Conversion/Passes.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"

using namespace mlir;
using namespace shardc;

namespace shardc {
#define GEN_PASS_DEF_CONVERTSHDTOSPMD
#include "shardc/Conversion/Passes.h.inc"
} // namespace shardc

namespace {

/// From a global tensor to the part that a device of the mesh holds.
class LocalTypes : public TypeConverter {
public:
  explicit LocalTypes(Mesh mesh) : theMesh(std::move(mesh)) {
    addConversion([](Type type) { return type; });
    addConversion([this](RankedTensorType type) -> Type {
      return spmd::localType(theMesh, type);
    });
    addConversion([this](Value value) { return typeWithHalo(value); });
  }

  const Mesh &mesh() const { return theMesh; }

private:
  /// Operands with a halo, and sums of which rows go back, have more rows than
  /// a part; nothing for other values.
  std::optional<Type> typeWithHalo(Value value) const {
    if (auto halo = value.getDefiningOp<shd::HaloExchangeOp>())
      return spmd::withHalo(spmd::localType(theMesh, halo.getInput().getType()),
                            halo.getDim(), shd::haloRows(halo));
    if (shd::HaloReduceOp halo = shd::haloReduceOf(value))
      return spmd::withHalo(
          spmd::localType(theMesh, halo.getResult().getType()), halo.getDim(),
          shd::haloRows(halo));
    return std::nullopt;
  }

  Mesh theMesh;
};

template <typename Op> class Pattern : public OpConversionPattern<Op> {
public:
  Pattern(const LocalTypes &types, MLIRContext *context)
      : OpConversionPattern<Op>(types, context) {}

protected:
  const LocalTypes &types() const {
    return *this->template getTypeConverter<LocalTypes>();
  }
};

/// True for attributes that say more of an operation than what it computes,
/// without prices and what only planning needed.
bool isKept(NamedAttribute attribute) {
  return llvm::is_contained(
      {shd::kName, shd::kInverseOf, shd::kExtent, shd::kExact, shd::kTemporary,
       shd::kGroup, shd::kOperand, shd::kIndices, shd::kPrologues, shd::kCopy,
       shd::kStore, shd::kRing, shd::kTravels, shd::kChunks, shd::kStage,
       shd::kDealt, shd::kSegments, shd::kAhead},
      attribute.getName());
}

SmallVector<NamedAttribute> keptAttributes(Operation *op) {
  return llvm::filter_to_vector(op->getDiscardableAttrs(), isKept);
}

/// Of what gives a program its structure, the stages are kept, and the order of
/// positions.
template <typename Op> Op keepStage(Op to, Operation *from) {
  for (StringRef name :
       {shd::kStage, shd::kDealt, shd::kSegments, shd::kAhead, shd::kHost})
    if (Attribute kept = from->getAttr(name))
      to->setAttr(name, kept);
  return to;
}

struct ConvertProgram : Pattern<shd::ProgramOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(shd::ProgramOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto program = spmd::ProgramOp::create(
        rewriter, op.getLoc(), op.getSymAttr(), op.getMeshAttr(),
        op.getPipelineAttr(), spmd::StageProgramAttr());
    rewriter.inlineRegionBefore(op.getBody(), program.getBody(),
                                program.getBody().end());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertDeclare : Pattern<shd::DeclareOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(shd::DeclareOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto parameter = spmd::ParameterOp::create(
        rewriter, op.getLoc(), spmd::localType(types().mesh(), op.getType()),
        op.getKindAttr(), op.getSymAttr(), op.getIndicesAttr(),
        TypeAttr::get(op.getType()), op.getStackedAttr(), op.getOfAttr());
    rewriter.replaceOp(op, keepStage(parameter, op));
    return success();
  }
};

struct ConvertOutput : Pattern<shd::OutputOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(shd::OutputOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto output = spmd::OutputOp::create(
        rewriter, op.getLoc(), op.getSymAttr(), adaptor.getValue(),
        op.getIndicesAttr(), TypeAttr::get(op.getValue().getType()));
    rewriter.replaceOp(op, keepStage(output, op));
    return success();
  }
};

struct ConvertUpdate : Pattern<shd::UpdateOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(shd::UpdateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto update =
        spmd::UpdateOp::create(rewriter, op.getLoc(), adaptor.getValue(),
                               adaptor.getState(), adaptor.getAt());
    rewriter.replaceOp(op, keepStage(update, op));
    return success();
  }
};

struct ConvertRepeat : Pattern<shd::RepeatOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(shd::RepeatOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> results;
    if (failed(types().convertTypes(op.getResultTypes(), results)))
      return failure();
    auto repeat = shd::RepeatOp::create(
        rewriter, op.getLoc(), results, op.getIndexAttr(), op.getCountAttr(),
        op.getReverseAttr(), adaptor.getInits());
    rewriter.inlineRegionBefore(op.getBody(), repeat.getBody(),
                                repeat.getBody().end());
    if (failed(rewriter.convertRegionTypes(&repeat.getBody(), types())))
      return failure();
    rewriter.replaceOp(op, keepStage(repeat, op).getResults());
    return success();
  }
};

/// A collective, with both global types in place of its own.
template <typename From, typename To> struct ConvertCollective : Pattern<From> {
  using Pattern<From>::Pattern;

  LogicalResult
  matchAndRewrite(From op, From::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type to = op.getResult().getType();
    OperationState state(
        op.getLoc(), To::getOperationName(), adaptor.getInput(),
        spmd::localType(this->types().mesh(), to), keptAttributes(op));
    state.addAttribute("axes", op.getAxesAttr());
    state.addAttribute("from", TypeAttr::get(op.getInput().getType()));
    state.addAttribute("to", TypeAttr::get(to));
    if constexpr (std::is_same_v<From, shd::AllReduceOp>)
      state.addAttribute("combination", op.getCombinationAttr());
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

/// A halo_exchange or halo_reduce, with both global types in place of its own.
template <typename From, typename To> struct ConvertHalo : Pattern<From> {
  using Pattern<From>::Pattern;

  LogicalResult
  matchAndRewrite(From op, From::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto halo = To::create(
        rewriter, op.getLoc(),
        this->types().template convertType<RankedTensorType>(op.getResult()),
        adaptor.getInput(), op.getDim(), op.getRows(), op.getAxes(),
        op.getInput().getType(), op.getResult().getType());
    halo->setDiscardableAttrs(keptAttributes(op));
    rewriter.replaceOp(op, halo);
    return success();
  }
};

/// An operation computes on a device's parts what it computes on whole tensors.
class ConvertCompute : public ConversionPattern {
public:
  ConvertCompute(const LocalTypes &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context),
        mesh(types.mesh()) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<shd::ShardingRuleOpInterface, shd::StatisticOp, shd::ConstantOp,
             shd::PartOp, shd::YieldOp>(op))
      return failure();
    FailureOr<ArrayAttr> shards = shardsOf(op, rewriter);
    SmallVector<Type> results;
    if (failed(shards) ||
        failed(getTypeConverter()->convertTypes(op->getResults(), results)))
      return failure();
    OperationState state(op->getLoc(), op->getName(), operands, results,
                         keptAttributes(op));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    if (!shards->empty())
      state.addAttribute(spmd::kShards, *shards);
    Operation *local = rewriter.create(state);
    // With a halo it is no part of the global tensor.
    for (auto [result, global] :
         llvm::zip_equal(local->getResults(), op->getResults()))
      if (shd::getSharding(global.getType()) && !shd::haloReduceOf(global))
        shd::setResultAttr(result, spmd::kGlobal,
                           TypeAttr::get(global.getType()));
    rewriter.replaceOp(op, local);
    return success();
  }

private:
  FailureOr<ArrayAttr> shardsOf(Operation *op, Builder &builder) const;

  const Mesh &mesh;
};

/// The layout of a value, if its type has one.
std::optional<Layout> layoutOf(const Mesh &mesh, Type type) {
  if (!shd::getSharding(type))
    return std::nullopt;
  return shd::explicitLayout(mesh, type);
}

FailureOr<ArrayAttr> ConvertCompute::shardsOf(Operation *op,
                                              Builder &builder) const {
  auto computes = dyn_cast<shd::ShardingRuleOpInterface>(op);
  if (!computes)
    return builder.getArrayAttr({});
  ShardingRule rule = computes.getShardingRule();
  SmallVector<std::optional<Layout>> operands, results;
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    operands.push_back(::layoutOf(mesh, op->getOperand(i).getType()));
  for (Type type : op->getResultTypes())
    results.push_back(::layoutOf(mesh, type));
  std::string why;
  std::optional<Strategy> strategy =
      inferStrategy(mesh, rule, operands, results, &why);
  if (!strategy)
    return op->emitError() << why;
  SmallVector<Attribute> shards;
  if (shd::HaloExchangeOp halo = shd::haloOf(op)) {
    const Factor &factor = rule.factors[rule.halo->factor];
    shards.push_back(spmd::ShardAttr::get(
        builder.getContext(), factor.name, factor.extent,
        llvm::to_vector(halo.getAxes().getAsRange<StringAttr>()),
        /*step=*/-1, /*eachIteration=*/false, shd::haloRows(halo),
        /*back=*/false));
  }
  for (auto [factor, axes] :
       llvm::zip_equal(rule.factors, strategy->factorAxes)) {
    if (axes.empty())
      continue;
    SmallVector<StringAttr> names;
    for (AxisIndex axis : axes)
      names.push_back(builder.getStringAttr(mesh.axes[axis].name));
    shards.push_back(spmd::ShardAttr::get(builder.getContext(), factor.name,
                                          factor.extent, names));
  }
  return builder.getArrayAttr(shards);
}

/// True for what the program of one device may hold of the shd dialect.
bool isLocal(Operation *op) {
  auto isWhole = [](Type type) { return !shd::getSharding(type); };
  auto mayStay = [](NamedAttribute attribute) {
    return isKept(attribute) || attribute.getName() == spmd::kShards ||
           attribute.getName() == spmd::kGlobal;
  };
  return isa<shd::ShardingRuleOpInterface, shd::StatisticOp, shd::ConstantOp,
             shd::PartOp, shd::RepeatOp, shd::YieldOp>(op) &&
         llvm::all_of(op->getDiscardableAttrs(), mayStay) &&
         llvm::all_of(op->getOperandTypes(), isWhole) &&
         llvm::all_of(op->getResultTypes(), isWhole);
}

class ConvertShdToSpmdPass
    : public shardc::impl::ConvertShdToSpmdBase<ConvertShdToSpmdPass> {
protected:
  void runOnOperation() override;

private:
  LogicalResult convert(shd::ProgramOp program);
};

LogicalResult ConvertShdToSpmdPass::convert(shd::ProgramOp program) {
  if (failed(shd::checkExplicit(program)))
    return failure();
  LocalTypes types(shd::toMesh(program.getMeshAttr()));
  RewritePatternSet patterns(&getContext());
  patterns.add<
      ConvertProgram, ConvertDeclare, ConvertOutput, ConvertUpdate,
      ConvertRepeat, ConvertCompute,
      ConvertHalo<shd::HaloExchangeOp, spmd::HaloExchangeOp>,
      ConvertHalo<shd::HaloReduceOp, spmd::HaloReduceOp>,
      ConvertCollective<shd::AllGatherOp, spmd::AllGatherOp>,
      ConvertCollective<shd::AllSliceOp, spmd::AllSliceOp>,
      ConvertCollective<shd::AllToAllOp, spmd::AllToAllOp>,
      ConvertCollective<shd::ReduceScatterOp, spmd::ReduceScatterOp>,
      ConvertCollective<shd::AllReduceOp, spmd::AllReduceOp>,
      ConvertCollective<shd::CollectivePermuteOp, spmd::CollectivePermuteOp>,
      ConvertCollective<shd::ToHostOp, spmd::ToHostOp>,
      ConvertCollective<shd::FromHostOp, spmd::FromHostOp>>(types,
                                                            &getContext());
  ConversionTarget target(getContext());
  target.addLegalDialect<spmd::SpmdDialect>();
  target.addDynamicallyLegalDialect<shd::ShdDialect>([](Operation *op) {
    return op->getParentOfType<spmd::ProgramOp>() && isLocal(op);
  });
  // Operations that compute may be of any dialect.
  target.markUnknownOpDynamicallyLegal([](Operation *op) {
    return !isa<shd::ShardingRuleOpInterface>(op) || isLocal(op);
  });
  return applyPartialConversion(program, target, std::move(patterns));
}

void ConvertShdToSpmdPass::runOnOperation() {
  for (auto program :
       llvm::make_early_inc_range(getOperation().getOps<shd::ProgramOp>()))
    if (failed(convert(program)))
      return signalPassFailure();
}

} // namespace
