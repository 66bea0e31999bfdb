//===- Ast.h - Abstract syntax of .shd files ------------------*- C++ -*-===//
//
// The abstract syntax tree of a file (docs/Language.md), before names are
// resolved. Every node has the range of source text that it came from; parents
// own their children. No MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_AST_H
#define SHARDC_FRONTEND_AST_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/SMLoc.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
class SourceMgr;
} // namespace llvm

namespace shardc::ast {

struct Name {
  std::string text;
  llvm::SMRange range;
};

//===----------------------------------------------------------------------===//
// Dims arithmetic
//===----------------------------------------------------------------------===//

/// `4 * D`, `ceildiv(k * T, E)`. Extents are integers.
struct DimExpr {
  enum class Kind { Integer, Name, Call, Negate, Add, Sub, Mul, Div, Rem };
  Kind kind = Kind::Integer;
  llvm::SMRange range;
  int64_t integer = 0;
  std::string name; // Name and Call
  std::vector<std::unique_ptr<DimExpr>> operands;
};
using DimExprPtr = std::unique_ptr<DimExpr>;

//===----------------------------------------------------------------------===//
// Indices and placements
//===----------------------------------------------------------------------===//

/// `@X`, `@(X, Y)`, `@()`, `@?`.
struct Placement {
  llvm::SMRange range; // from the `@`
  bool open = false;
  std::vector<Name> axes;
};

/// `{+X, +Y}`.
struct Partial {
  llvm::SMRange range;
  std::vector<Name> axes;
};

struct IndexList;
struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// One entry between the brackets of a reference or declaration: a name, or (in
/// references) an integer expression that gathers or selects.
struct Index {
  llvm::SMRange range; // without the placement
  /// A bare name, else empty.
  std::string name;
  /// An integer tensor (`tokens[B, T]`) or expression (`T - 1`, `0`), else
  /// null.
  ExprPtr gather;
  std::optional<Placement> placement;
};

/// `[B@X, D]{+Y}`.
struct IndexList {
  llvm::SMRange range; // the brackets and the partial
  std::vector<Index> indices;
  std::optional<Partial> partial;
  /// Any `@`, or a partial.
  bool hasPlacement() const {
    return partial.has_value() || llvm::any_of(indices, [](const Index &index) {
             return index.placement.has_value();
           });
  }
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// An index of a function: `softmax[S]`, `slice[I: 2..6 -> J]`,
/// `split[D -> (A, B)]`.
struct FunctionIndex {
  enum class Kind { Plain, Range, Group };
  Kind kind = Kind::Plain;
  llvm::SMRange range;
  std::vector<Name> from; // Plain, Range: one
  std::vector<Name> to;   // Group; Range: one or none
  DimExprPtr low, high;   // Range
  /// A placement that the grammar admits and the language refuses.
  std::optional<Placement> placement;
};

struct Argument {
  llvm::SMRange range;
  std::string name; // `eps=...`, or empty
  llvm::SMRange nameRange;
  ExprPtr value;
};

struct Expr {
  enum class Kind {
    Integer,
    Real,
    Infinity,
    True,
    False,
    None,
    Type,   // only as argument values
    Ref,    // name, indices
    Call,   // name, functionIndices, arguments (functions, casts, layers)
            // also `size[I]` and `iota[I]`, without arguments
    Negate, // operands[0]
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Paren, // operands[0]; kept, because it fixes the order of contraction
  };
  Kind kind = Kind::Integer;
  llvm::SMRange range;
  int64_t integer = 0;
  double real = 0;
  std::string name; // Ref, Call, Type
  llvm::SMRange nameRange;
  std::optional<IndexList> indices; // Ref
  std::vector<FunctionIndex> functionIndices;
  bool hasFunctionIndices = false; // `f[](x)` differs from `f(x)`
  std::vector<Argument> arguments;
  std::vector<ExprPtr> operands;
};

//===----------------------------------------------------------------------===//
// Declarations and statements
//===----------------------------------------------------------------------===//

struct Item {
  enum class Kind {
    Import,
    Hardware,
    Mesh,
    Dim,
    Order,
    Tensor,
    Output,
    Layer,
    Train,
    Serve,
    Layout,
    Repeat,
    Assign,
    Broken,
  };
  explicit Item(Kind kind) : kind(kind) {}
  virtual ~Item() = default;
  const Kind kind;
  llvm::SMRange range;
};
using ItemPtr = std::unique_ptr<Item>;

struct ImportDecl : Item {
  ImportDecl() : Item(Kind::Import) {}
  std::string path;
  llvm::SMRange pathRange;
  static bool classof(const Item *i) { return i->kind == Kind::Import; }
};

/// `45 GB/s`, `multiple(4)`, `[16, 16]`, `true`.
struct HardwareValue {
  enum class Kind { Number, Word, List };
  Kind kind = Kind::Number;
  llvm::SMRange range;
  double number = 0;
  std::string unit;          // "GB/s", or empty
  std::string word;          // Word: `all`, `true`, `multiple`
  std::vector<int64_t> list; // List, and a word's arguments
};

struct HardwareFieldDecl {
  Name name; // dotted
  HardwareValue value;
};

struct NetworkDecl {
  Name name;
  std::string kind; // torus, switch, mesh or empty
  std::vector<Name> members;
  std::vector<HardwareFieldDecl> fields;
};

struct CalibrationDecl {
  llvm::SMRange range;
  std::vector<HardwareFieldDecl> fields;
  std::vector<NetworkDecl> networks;
};

struct HardwareDecl : Item {
  HardwareDecl() : Item(Kind::Hardware) {}
  Name name;
  bool hasShape = false;
  std::vector<DimExprPtr> shape;
  bool hasBody = false;
  std::vector<HardwareFieldDecl> fields;
  std::vector<NetworkDecl> networks;
  std::vector<CalibrationDecl> calibrations;
  static bool classof(const Item *i) { return i->kind == Kind::Hardware; }
};

struct MeshAxisDecl {
  Name name;
  DimExprPtr size;
  std::vector<Name> on;
};

struct MeshDecl : Item {
  MeshDecl() : Item(Kind::Mesh) {}
  bool isAuto = false;
  std::vector<Name> autoNames;
  std::vector<MeshAxisDecl> axes;
  static bool classof(const Item *i) { return i->kind == Kind::Mesh; }
};

struct DimDef {
  Name name;
  DimExprPtr value;
};

struct DimDecl : Item {
  DimDecl() : Item(Kind::Dim) {}
  std::vector<DimDef> dims;
  static bool classof(const Item *i) { return i->kind == Kind::Dim; }
};

/// `order T = zigzag`: how positions along an index are stored.
struct OrderDecl : Item {
  struct Def {
    Name index, order;
  };
  OrderDecl() : Item(Kind::Order) {}
  std::vector<Def> orders;
  static bool classof(const Item *i) { return i->kind == Kind::Order; }
};

struct TensorDecl : Item {
  enum class TensorKind { Input, Weight, State };
  TensorDecl() : Item(Kind::Tensor) {}
  TensorKind tensorKind = TensorKind::Input;
  Name name;
  Name type;
  IndexList indices;
  static bool classof(const Item *i) { return i->kind == Kind::Tensor; }
};

struct OutputDecl : Item {
  OutputDecl() : Item(Kind::Output) {}
  Name name;
  std::optional<IndexList> indices;
  static bool classof(const Item *i) { return i->kind == Kind::Output; }
};

struct Parameter {
  Name name;
  bool isDim = false; // `w: dim`
  Name type;
  IndexList indices;
};

struct LayerDecl : Item {
  LayerDecl() : Item(Kind::Layer) {}
  Name name;
  std::vector<Parameter> parameters;
  std::vector<Name> results;
  std::vector<ItemPtr> body;
  static bool classof(const Item *i) { return i->kind == Kind::Layer; }
};

struct RepeatStmt : Item {
  RepeatStmt() : Item(Kind::Repeat) {}
  Name index;
  std::optional<Placement> placement;
  /// `microbatches(8)`, of a pipeline without training; null: not written.
  DimExprPtr microbatches;
  /// `schedule(interleaved(2))`, of a pipeline without training, without
  /// spaces; nothing: not written.
  std::optional<Name> schedule;
  bool hasSave = false;
  std::vector<Name> save;
  std::vector<ItemPtr> body;
  static bool classof(const Item *i) { return i->kind == Kind::Repeat; }
};

struct Target {
  Name name;
  std::optional<IndexList> indices;
};

struct AssignStmt : Item {
  AssignStmt() : Item(Kind::Assign) {}
  std::vector<Target> targets;
  std::optional<Name> type; // `H: f32[B, F] = ...`
  bool accumulate = false;  // `+=`
  ExprPtr value;
  static bool classof(const Item *i) { return i->kind == Kind::Assign; }
};

/// Stands in place of a declaration of a tensor or a statement with an error in
/// its syntax, so that the rest of the file can be checked.
struct BrokenItem : Item {
  BrokenItem() : Item(Kind::Broken) {}
  /// The tensors that it may define.
  std::vector<Target> targets;
  bool isDeclaration = false;
  static bool classof(const Item *i) { return i->kind == Kind::Broken; }
};

struct SettingArgument;

/// A value of a train or serve block; it is checked when the block is imported.
struct SettingValue {
  llvm::SMRange range;
  std::string text; // of the source
  /// Where it is arithmetic, a name, or `every(4)`.
  DimExprPtr number;
  /// `adamw(moments=f32)`.
  std::string function;
  std::vector<SettingArgument> arguments;
};

struct SettingArgument {
  Name name;
  SettingValue value;
};

/// `name = value, value` of a train or serve block.
struct Setting {
  Name name;
  std::vector<SettingValue> values;
};

/// A tensor that a train block names: `W[D@X, F]`, `"h.grad.2"[B@X, F]`.
struct PlacedTensor {
  /// Without its quotes.
  Name name;
  bool isQuoted = false;
  std::optional<IndexList> indices;
  /// Behind `->`: how what is made as `indices` say is stored.
  std::optional<IndexList> stored;
};

/// `gradient W[D@X, F]`, `save h`.
struct Placing {
  Name what;
  PlacedTensor tensor;
};

/// True if a placing of gradients, moments or masters means this weight: its
/// full name in quotes, or the last part of it, whichever the call.
bool isOfWeight(const Placing &placing, llvm::StringRef weight);

/// `layout "h.grad"[B@X, F] = "y.grad"[B@X, D], "W"[F, D]`, `copy "W.copy"[F,
/// D]`: how an operation of the whole step runs.
struct StepLayout {
  llvm::SMRange range;
  Name what;
  std::vector<PlacedTensor> results, operands;
};

/// True of the words that begin a StepLayout.
inline bool isLayoutWord(llvm::StringRef word) {
  return word == "layout" || word == "copy";
}

/// The same of a pipeline that is not trained, at the top level of its file.
struct LayoutDecl : Item {
  LayoutDecl() : Item(Kind::Layout) {}
  StepLayout layout;
  static bool classof(const Item *i) { return i->kind == Kind::Layout; }
};

struct TrainBlock : Item {
  TrainBlock() : Item(Kind::Train) {}
  std::vector<Setting> settings;
  std::vector<Placing> placings;
  std::vector<StepLayout> layouts;
  static bool classof(const Item *i) { return i->kind == Kind::Train; }
};

/// `prefill on h100[8] mesh [X=8]`: the machine of a phase.
struct PhaseMachine {
  llvm::SMRange range;
  Name phase;
  std::unique_ptr<HardwareDecl> hardware;
  /// Null where none is written.
  std::unique_ptr<MeshDecl> mesh;
};

struct ServeBlock : Item {
  ServeBlock() : Item(Kind::Serve) {}
  std::vector<Setting> settings;
  std::vector<PhaseMachine> machines;
  static bool classof(const Item *i) { return i->kind == Kind::Serve; }
};

/// The text of `--sweep` or `--crossover`: `B in 64, 128`, `B in 64..4096 * 2`,
/// `hardware in tpu_v5e[4, 4], h100[2, 8]`.
struct Question {
  struct Value {
    llvm::SMRange range;
    int64_t integer = 0;
  };
  enum class Step { None, Add, Multiply };

  llvm::SMRange range;
  Name name;
  /// Those listed; of a range the first.
  std::vector<Value> values;
  /// The last value of a range.
  std::optional<Value> last;
  Step step = Step::None;
  Value by;
  /// The values of `hardware`.
  std::vector<std::unique_ptr<HardwareDecl>> machines;
};

/// One file. Imports are not followed here.
struct File {
  std::vector<ItemPtr> items;
  /// The text, in the source manager.
  unsigned buffer = 0;
};

/// `--emit-ast`: an indented tree, one node a line.
void print(llvm::raw_ostream &os, const File &file);

} // namespace shardc::ast

#endif // SHARDC_FRONTEND_AST_H
