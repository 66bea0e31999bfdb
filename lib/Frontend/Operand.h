//===- Operand.h - What an expression evaluates to -------------*- C++ -*-===//
//
// Values with the names that their dimensions have at one use, and the tree of
// sums and products that the importer arranges before it emits operations.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_OPERAND_H
#define SHARDC_LIB_FRONTEND_OPERAND_H

#include "ElementTypes.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/Support/SMLoc.h"
#include <memory>
#include <vector>

namespace shardc {

/// A number, a tensor, or (after an error) neither.
struct Operand {
  std::optional<Scalar> number;
  mlir::Value value;
  IndexNames indices;
  /// The layout that this use asks for, or null.
  shd::ShardingAttr pin;
  /// Byte offset of the reference in its file, or -1 for intermediate results.
  int64_t use = -1;
  /// Its name in errors: that of the reference, or empty.
  llvm::StringRef label;
  llvm::SMRange range;
  /// A reference as written: no operation of this statement made it.
  bool isReference = false;

  bool isPoison() const { return !number && !value; }
  mlir::Type elementType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
  }
  llvm::ArrayRef<int64_t> extents() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  /// The extent of one of its indices; nothing for another name.
  std::optional<int64_t> extent(mlir::StringAttr name) const {
    const auto *index = llvm::find(indices, name);
    if (index == indices.end())
      return std::nullopt;
    return extents()[index - indices.begin()];
  }
};

/// Which indices the products of an expression sum
/// (docs/Language.md#6-statements-and-indices).
enum class SumMode {
  /// Those that the left side lacks.
  Left,
  /// Those that two or more factors carry and nothing around names.
  Argument,
  /// None: there are no brackets on the left.
  Free,
};

/// Where an expression stands.
struct Context {
  SumMode mode = SumMode::Free;
  /// Indices of the left side and of the brackets of enclosing functions.
  IndexNames named;
  /// Inside an index position: a bare name is a dim, not a tensor.
  bool isPosition = false;
};

/// Wishes for the result of a statement's last operation.
struct Target {
  /// Nothing: as they come.
  std::optional<IndexNames> indices;
  /// Null: the natural one.
  mlir::Type elementType;
  /// An intermediate result: the type is for those that it holds exactly.
  bool widenOnly = false;
};

/// The hint's order, if it names the same indices or (for operations that
/// broadcast) those and more; else `names` as they are.
IndexNames arrange(IndexNames names, const Target *hint, bool broadcasts);

struct Node;

/// Factors, of which `inverse` ones divide, and the numbers among them.
struct Product {
  struct Factor {
    std::unique_ptr<Node> node;
    bool inverse = false;
  };
  Scalar coefficient = Scalar::get(1);
  /// The product of the numbers that it is divided by.
  Scalar divisor = Scalar::get(1);
  std::vector<Factor> factors;
  llvm::SMRange range;

  /// The product of the numbers.
  Scalar number() const {
    return divisor.isOne() ? coefficient : coefficient / divisor;
  }
  bool isPlain() const { return coefficient.isOne() && divisor.isOne(); }
  /// Adds the factors of a product in parentheses. They stay together where
  /// that fixes an order: one factor has none, and divisors need something to
  /// divide.
  void addGroup(Product group);
};

struct Term {
  Product product;
  bool negative = false;
};

/// The sum of terms that are all numbers.
std::optional<Scalar> constantSum(llvm::ArrayRef<Term> terms);

/// A factor: an evaluated operand, a product in parentheses, or a sum in them.
struct Node {
  enum class Kind { Leaf, Group, Sum };
  Kind kind = Kind::Leaf;
  Operand leaf;
  Product group;
  std::vector<Term> terms;
};

/// A factor with the groups around it opened.
struct FlatFactor {
  Node *node;
  bool inverse;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_OPERAND_H
