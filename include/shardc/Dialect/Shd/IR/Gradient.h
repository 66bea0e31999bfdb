//===- Gradient.h - Building the gradients of operations ------*- C++ -*-===//
//
// Reverse-mode differentiation, one operation at a time: each operation's
// `buildGradient` reads its operands, results and their gradients as named
// tensors, and builds the gradients of its operands from operations of the
// dialect.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_GRADIENT_H
#define SHARDC_DIALECT_SHD_IR_GRADIENT_H

#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// On a cast of a gradient to the type in which it is sent
/// (docs/Training.md#update): partial sums may pass it, so that what is reduced
/// has this type.
inline constexpr llvm::StringLiteral kSent = "shd.sent";

class GradientBuilder;

/// On a constant of a derivative or an update: the number before it was rounded
/// to the element type, for runs in doubles.
inline constexpr llvm::StringLiteral kExact = "shd.exact";

/// A constant scalar of `elementType` that runs in doubles take as `value`.
mlir::Value exactConstant(mlir::OpBuilder &builder, mlir::Location loc,
                          double value, mlir::Type elementType);

/// Names an operation of the backward pass after the value `name` whose
/// gradient it is part of.
void nameGradient(mlir::Operation *op, llvm::StringRef name);

/// Lays a declared tensor out as the entry of `pins` for `name` says of each of
/// its parts; `pins` and the entry may be absent.
void pinParts(DeclareOp declare, mlir::DictionaryAttr pins,
              llvm::StringRef name);

/// A tensor and the names of its indices. The operators build elementwise
/// operations; operands are broadcast by name, the result has the wider element
/// type, and numbers take that of the other operand.
struct NamedTensor {
  GradientBuilder *builder = nullptr;
  mlir::Value value;
  llvm::SmallVector<llvm::StringRef, 4> indices;

  mlir::RankedTensorType getType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::Type getElementType() const { return getType().getElementType(); }
  int64_t extent(llvm::StringRef index) const;
};

NamedTensor operator+(const NamedTensor &a, const NamedTensor &b);
NamedTensor operator-(const NamedTensor &a, const NamedTensor &b);
NamedTensor operator*(const NamedTensor &a, const NamedTensor &b);
NamedTensor operator/(const NamedTensor &a, const NamedTensor &b);
NamedTensor operator-(const NamedTensor &a);
NamedTensor operator+(double a, const NamedTensor &b);
NamedTensor operator-(double a, const NamedTensor &b);
NamedTensor operator*(double a, const NamedTensor &b);

/// The backward pass around an operation whose gradient is built.
class BackwardScope {
public:
  virtual ~BackwardScope() = default;
  /// True if a value of the forward pass needs a gradient.
  virtual bool isWanted(mlir::Value value) = 0;
  /// The element type in which a value's gradient is held.
  virtual mlir::Type gradientType(mlir::Value value) = 0;
  /// A value as the backward pass has it at the insertion point of `builder`:
  /// of one of the forward pass what was kept, or is recomputed.
  virtual mlir::Value read(mlir::Value value, mlir::OpBuilder &builder) = 0;
};

/// Builds the gradients of one operation's operands, at the insertion point of
/// `builder`.
class GradientBuilder {
public:
  /// `resultGradients`: one for each result; null where the loss does not
  /// depend on it.
  GradientBuilder(mlir::OpBuilder &builder, ShardingRuleOpInterface forward,
                  mlir::ValueRange resultGradients, BackwardScope &scope)
      : builder(builder), forward(forward), resultGradients(resultGradients),
        scope(scope), gradients(forward->getNumOperands()) {}

  /// An operand or a result of the forward operation. An operation that is
  /// created with it reads it in the backward pass, so that it must be kept.
  NamedTensor operand(unsigned number);
  NamedTensor result(unsigned number = 0);
  /// The gradient of the loss with respect to a result.
  NamedTensor gradient(unsigned number = 0);

  /// True if operand `number` needs a gradient.
  bool wants(unsigned number) const;
  /// Gives operand `number` its gradient: sums over the indices that the
  /// operand lacks, broadcasts along those that `gradient` lacks.
  void give(unsigned number, NamedTensor gradient);
  /// The same, for a gradient that is a product: summed over every index that
  /// the operand lacks, as an einsum if there is one.
  void giveProduct(unsigned number, const NamedTensor &a, const NamedTensor &b);

  /// The element type in which the gradient of operand `number` is held.
  mlir::Type gradientType(unsigned number) const {
    return scope.gradientType(forward->getOperand(number));
  }

  /// The gradients given so far: one for each operand, or null.
  llvm::ArrayRef<mlir::Value> getGradients() const { return gradients; }

  NamedTensor constant(double value, mlir::Type elementType);
  NamedTensor elementwise(Function function,
                          llvm::ArrayRef<NamedTensor> operands,
                          mlir::Type elementType = {});
  /// Zeros of the shape of `like`, but for index `index`, which becomes `name`
  /// with `extent` elements.
  NamedTensor zerosLike(const NamedTensor &like, llvm::StringRef index,
                        llvm::StringRef name, int64_t extent);
  /// Row-major numbers (int32) of the elements along `indices` of `like`.
  NamedTensor numberElements(const NamedTensor &like,
                             llvm::ArrayRef<llvm::StringRef> indices);
  NamedTensor where(const NamedTensor &condition, const NamedTensor &a,
                    const NamedTensor &b);
  NamedTensor cast(const NamedTensor &tensor, mlir::Type elementType);
  /// The type in which normalisations and losses compute: f32, or f64 if an
  /// operand has it; and a tensor in this type.
  mlir::Type floatType(llvm::ArrayRef<NamedTensor> operands);
  NamedTensor toFloat(const NamedTensor &tensor);
  NamedTensor reduce(Reduction kind, const NamedTensor &tensor,
                     llvm::ArrayRef<llvm::StringRef> indices);
  /// Sums over the indices that are not in `indices`.
  NamedTensor sumTo(const NamedTensor &tensor,
                    llvm::ArrayRef<llvm::StringRef> indices);
  /// The tensor with exactly the indices `indices`, in their order, which may
  /// be more than it has; `like` has their extents.
  NamedTensor broadcastTo(const NamedTensor &tensor, const NamedTensor &like);

  /// Builds any operation of the dialect and names it after the forward one;
  /// its first result.
  template <typename Op, typename... Args>
  NamedTensor create(llvm::ArrayRef<llvm::StringRef> indices, Args &&...args) {
    auto op =
        Op::create(builder, forward->getLoc(), std::forward<Args>(args)...);
    return record(op, indices);
  }

  /// The indexing of an operation with these operands and this result.
  IndexingAttr indexing(llvm::ArrayRef<NamedTensor> operands,
                        llvm::ArrayRef<llvm::StringRef> result);
  mlir::OpBuilder &getBuilder() { return builder; }

private:
  NamedTensor record(mlir::Operation *op,
                     llvm::ArrayRef<llvm::StringRef> indices);

  mlir::OpBuilder &builder;
  ShardingRuleOpInterface forward;
  mlir::ValueRange resultGradients;
  BackwardScope &scope;
  llvm::SmallVector<mlir::Value, 4> gradients;
};

/// The name of an attention's logsumexp; empty if the attention has none.
std::string logsumexpName(llvm::StringRef attention);

/// A value that a backward pass may compute again in place of keeping it, with
/// the name by which shd.training lists it.
struct RecomputableValue {
  CostOpInterface op;
  /// Null for the logsumexp that an attention gets when it is differentiated.
  mlir::Value value;
  std::string name;
};

/// All that operations in repeats of the forward pass make, in program order.
std::vector<RecomputableValue> recomputableValues(ProgramOp program);

/// The extent that microbatches divide: of the index that the program trains
/// over, or of the first index of each input. 0 if no input has one.
int64_t batchExtent(ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_GRADIENT_H
