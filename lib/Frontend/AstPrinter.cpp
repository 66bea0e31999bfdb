//===- AstPrinter.cpp - The AST as an indented tree -----------------------===//
//
// Output of --emit-ast: one node a line, children two columns further in,
// attributes after the node's name. Every field of the AST appears.
//
//===----------------------------------------------------------------------===//

#include "shardc/Frontend/Ast.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;
using namespace shardc::ast;
using llvm::StringRef;

namespace {

class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : os(os) {}

  void print(const Item &item);

private:
  /// Children are printed while one of these lives.
  struct Inner {
    explicit Inner(Printer &printer) : printer(printer) { ++printer.depth; }
    ~Inner() { --printer.depth; }
    Printer &printer;
  };

  llvm::raw_ostream &line(StringRef node) {
    return os.indent(2 * depth) << node;
  }

  void print(const DimExpr &expr);
  void print(const Expr &expr);
  void print(const Argument &argument);
  void print(const FunctionIndex &index);
  void print(const IndexList &list);
  void print(const HardwareFieldDecl &field);
  void print(const NetworkDecl &network);
  void print(const Setting &setting);
  void print(const char *role, const PlacedTensor &tensor);
  void print(const std::optional<Placement> &placement);
  void print(llvm::ArrayRef<Name> names, StringRef before = "(",
             StringRef after = ")");
  void printBody(const std::vector<ItemPtr> &items);

  void printItem(const ImportDecl &item);
  void printItem(const HardwareDecl &item);
  void printItem(const MeshDecl &item);
  void printItem(const DimDecl &item);
  void printItem(const OrderDecl &item);
  void printItem(const TensorDecl &item);
  void printItem(const OutputDecl &item);
  void printItem(const LayerDecl &item);
  void printItem(const TrainBlock &item);
  void printItem(const ServeBlock &item);
  void print(const StepLayout &layout);
  void printItem(const RepeatStmt &item);
  void printItem(const AssignStmt &item);

  llvm::raw_ostream &os;
  unsigned depth = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Names, placements and indices
//===----------------------------------------------------------------------===//

void Printer::print(llvm::ArrayRef<Name> names, StringRef before,
                    StringRef after) {
  os << before;
  llvm::interleaveComma(names, os, [&](const Name &n) { os << n.text; });
  os << after;
}

void Printer::print(const std::optional<Placement> &placement) {
  if (!placement)
    return;
  os << " @";
  if (placement->open)
    os << "?";
  else
    print(placement->axes);
}

void Printer::print(const IndexList &list) {
  line("indices");
  if (list.partial)
    print(list.partial->axes, " partial {", "}");
  os << "\n";
  Inner inner(*this);
  for (const Index &index : list.indices) {
    line(index.gather ? "gather" : "index");
    if (!index.gather)
      os << " " << index.name;
    print(index.placement);
    os << "\n";
    Inner ofIndex(*this);
    if (index.gather)
      print(*index.gather);
  }
}

void Printer::print(const FunctionIndex &index) {
  line("over");
  switch (index.kind) {
  case FunctionIndex::Kind::Plain:
    os << " " << index.from.front().text;
    break;
  case FunctionIndex::Kind::Range:
    os << " range " << index.from.front().text;
    if (!index.to.empty())
      os << " -> " << index.to.front().text;
    break;
  case FunctionIndex::Kind::Group:
    print(index.from, " group (");
    print(index.to, " -> (");
    break;
  }
  print(index.placement);
  os << "\n";
  Inner inner(*this);
  for (const DimExpr *bound : {index.low.get(), index.high.get()})
    if (bound)
      print(*bound);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static StringRef spelling(DimExpr::Kind kind) {
  switch (kind) {
  case DimExpr::Kind::Integer:
    return "integer";
  case DimExpr::Kind::Name:
    return "dim";
  case DimExpr::Kind::Call:
    return "call";
  case DimExpr::Kind::Negate:
    return "negate";
  case DimExpr::Kind::Add:
    return "+";
  case DimExpr::Kind::Sub:
    return "-";
  case DimExpr::Kind::Mul:
    return "*";
  case DimExpr::Kind::Div:
    return "/";
  case DimExpr::Kind::Rem:
    return "%";
  }
  llvm_unreachable("a kind of dims arithmetic");
}

void Printer::print(const DimExpr &expr) {
  line(spelling(expr.kind));
  if (expr.kind == DimExpr::Kind::Integer)
    os << " " << expr.integer;
  else if (!expr.name.empty())
    os << " " << expr.name;
  os << "\n";
  Inner inner(*this);
  for (const DimExprPtr &operand : expr.operands)
    print(*operand);
}

static StringRef spelling(Expr::Kind kind) {
  switch (kind) {
  case Expr::Kind::Integer:
    return "integer";
  case Expr::Kind::Real:
    return "real";
  case Expr::Kind::Infinity:
    return "inf";
  case Expr::Kind::True:
    return "true";
  case Expr::Kind::False:
    return "false";
  case Expr::Kind::None:
    return "none";
  case Expr::Kind::Type:
    return "type";
  case Expr::Kind::Ref:
    return "ref";
  case Expr::Kind::Call:
    return "call";
  case Expr::Kind::Negate:
    return "negate";
  case Expr::Kind::Add:
    return "+";
  case Expr::Kind::Sub:
    return "-";
  case Expr::Kind::Mul:
    return "*";
  case Expr::Kind::Div:
    return "/";
  case Expr::Kind::Rem:
    return "%";
  case Expr::Kind::Eq:
    return "==";
  case Expr::Kind::Ne:
    return "!=";
  case Expr::Kind::Lt:
    return "<";
  case Expr::Kind::Le:
    return "<=";
  case Expr::Kind::Gt:
    return ">";
  case Expr::Kind::Ge:
    return ">=";
  case Expr::Kind::Paren:
    return "parentheses";
  }
  llvm_unreachable("a kind of expression");
}

void Printer::print(const Expr &expr) {
  line(spelling(expr.kind));
  if (expr.kind == Expr::Kind::Integer)
    os << " " << expr.integer;
  else if (expr.kind == Expr::Kind::Real)
    os << " " << llvm::format("%.17g", expr.real);
  else if (!expr.name.empty())
    os << " " << expr.name;
  if (expr.hasFunctionIndices && expr.functionIndices.empty())
    os << " []";
  os << "\n";
  Inner inner(*this);
  if (expr.indices)
    print(*expr.indices);
  for (const FunctionIndex &index : expr.functionIndices)
    print(index);
  for (const Argument &argument : expr.arguments)
    print(argument);
  for (const ExprPtr &operand : expr.operands)
    print(*operand);
}

void Printer::print(const Argument &argument) {
  if (argument.name.empty())
    return print(*argument.value);
  line("argument ") << argument.name << "\n";
  Inner inner(*this);
  print(*argument.value);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void Printer::printItem(const ImportDecl &item) {
  line("import \"") << item.path << "\"\n";
}

void Printer::print(const HardwareFieldDecl &field) {
  const HardwareValue &value = field.value;
  line("field ") << field.name.text << " = ";
  switch (value.kind) {
  case HardwareValue::Kind::Number:
    os << llvm::format("%.17g", value.number);
    if (!value.unit.empty())
      os << " " << value.unit;
    break;
  case HardwareValue::Kind::Word:
    os << value.word;
    break;
  case HardwareValue::Kind::List:
    break;
  }
  bool list = value.kind == HardwareValue::Kind::List;
  if (list || !value.list.empty()) {
    os << (list ? "[" : "(");
    llvm::interleaveComma(value.list, os);
    os << (list ? "]" : ")");
  }
  os << "\n";
}

void Printer::print(const NetworkDecl &network) {
  line("network ") << network.name.text;
  if (!network.kind.empty()) {
    os << " " << network.kind;
    print(network.members, "[", "]");
  }
  os << "\n";
  Inner ofNetwork(*this);
  for (const HardwareFieldDecl &field : network.fields)
    print(field);
}

void Printer::printItem(const HardwareDecl &item) {
  line("hardware ") << item.name.text << (item.hasBody ? " {}" : "") << "\n";
  Inner inner(*this);
  if (item.hasShape) {
    line("shape") << "\n";
    Inner ofShape(*this);
    for (const DimExprPtr &extent : item.shape)
      print(*extent);
  }
  for (const HardwareFieldDecl &field : item.fields)
    print(field);
  for (const NetworkDecl &network : item.networks)
    print(network);
  for (const CalibrationDecl &calibration : item.calibrations) {
    line("calibration") << "\n";
    Inner ofCalibration(*this);
    for (const HardwareFieldDecl &field : calibration.fields)
      print(field);
    for (const NetworkDecl &network : calibration.networks)
      print(network);
  }
}

void Printer::printItem(const MeshDecl &item) {
  line("mesh");
  if (item.isAuto)
    os << " auto";
  if (!item.autoNames.empty())
    print(item.autoNames, " [", "]");
  os << "\n";
  Inner inner(*this);
  for (const MeshAxisDecl &axis : item.axes) {
    line("axis ") << axis.name.text;
    if (!axis.on.empty())
      print(axis.on, " on (");
    os << "\n";
    Inner ofAxis(*this);
    print(*axis.size);
  }
}

void Printer::printItem(const OrderDecl &item) {
  for (const OrderDecl::Def &each : item.orders)
    line("order ") << each.index.text << " " << each.order.text << "\n";
}

void Printer::printItem(const DimDecl &item) {
  for (const DimDef &dim : item.dims) {
    line("dim ") << dim.name.text << "\n";
    Inner inner(*this);
    print(*dim.value);
  }
}

static StringRef spelling(TensorDecl::TensorKind kind) {
  switch (kind) {
  case TensorDecl::TensorKind::Input:
    return "input ";
  case TensorDecl::TensorKind::Weight:
    return "weight ";
  case TensorDecl::TensorKind::State:
    return "state ";
  }
  llvm_unreachable("a kind of tensor");
}

void Printer::printItem(const TensorDecl &item) {
  line(spelling(item.tensorKind))
      << item.name.text << ": " << item.type.text << "\n";
  Inner inner(*this);
  print(item.indices);
}

void Printer::printItem(const OutputDecl &item) {
  line("output ") << item.name.text << "\n";
  Inner inner(*this);
  if (item.indices)
    print(*item.indices);
}

void Printer::printBody(const std::vector<ItemPtr> &items) {
  line("body") << "\n";
  Inner inner(*this);
  for (const ItemPtr &item : items)
    print(*item);
}

void Printer::printItem(const LayerDecl &item) {
  line("layer ") << item.name.text;
  print(item.results, " -> (");
  os << "\n";
  Inner inner(*this);
  for (const Parameter &parameter : item.parameters) {
    line("parameter ") << parameter.name.text << ": "
                       << (parameter.isDim ? "dim" : parameter.type.text)
                       << "\n";
    Inner ofParameter(*this);
    if (!parameter.isDim)
      print(parameter.indices);
  }
  printBody(item.body);
}

void Printer::print(const Setting &setting) {
  line("setting ") << setting.name.text << " = ";
  llvm::interleaveComma(setting.values, os,
                        [&](const SettingValue &value) { os << value.text; });
  os << "\n";
}

void Printer::printItem(const TrainBlock &item) {
  line("train") << "\n";
  Inner inner(*this);
  for (const Setting &setting : item.settings)
    print(setting);
  for (const Placing &placing : item.placings)
    print(("placing " + placing.what.text + " ").c_str(), placing.tensor);
  for (const StepLayout &layout : item.layouts)
    print(layout);
}

void Printer::print(const StepLayout &layout) {
  line(layout.what.text) << "\n";
  Inner inner(*this);
  for (const PlacedTensor &result : layout.results)
    print("result ", result);
  for (const PlacedTensor &operand : layout.operands)
    print("operand ", operand);
}

void Printer::print(const char *role, const PlacedTensor &tensor) {
  line(role) << tensor.name.text << "\n";
  Inner inner(*this);
  if (tensor.indices)
    print(*tensor.indices);
  if (!tensor.stored)
    return;
  line("stored") << "\n";
  print(*tensor.stored);
}

void Printer::printItem(const ServeBlock &item) {
  line("serve") << "\n";
  Inner inner(*this);
  for (const Setting &setting : item.settings)
    print(setting);
  for (const PhaseMachine &machine : item.machines) {
    line("machine ") << machine.phase.text << "\n";
    Inner ofMachine(*this);
    printItem(*machine.hardware);
    if (machine.mesh)
      printItem(*machine.mesh);
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Printer::printItem(const RepeatStmt &item) {
  line("repeat ") << item.index.text;
  print(item.placement);
  if (item.hasSave)
    print(item.save, " save (");
  os << "\n";
  Inner inner(*this);
  if (item.microbatches) {
    line("microbatches") << "\n";
    Inner count(*this);
    print(*item.microbatches);
  }
  if (item.schedule)
    line("schedule ") << item.schedule->text << "\n";
  printBody(item.body);
}

void Printer::printItem(const AssignStmt &item) {
  line(item.accumulate ? "accumulate" : "assign");
  if (item.type)
    os << " " << item.type->text;
  os << "\n";
  Inner inner(*this);
  for (const Target &target : item.targets) {
    line("target ") << target.name.text << "\n";
    Inner ofTarget(*this);
    if (target.indices)
      print(*target.indices);
  }
  print(*item.value);
}

void Printer::print(const Item &item) {
  switch (item.kind) {
  case Item::Kind::Import:
    return printItem(llvm::cast<ImportDecl>(item));
  case Item::Kind::Hardware:
    return printItem(llvm::cast<HardwareDecl>(item));
  case Item::Kind::Mesh:
    return printItem(llvm::cast<MeshDecl>(item));
  case Item::Kind::Dim:
    return printItem(llvm::cast<DimDecl>(item));
  case Item::Kind::Order:
    return printItem(llvm::cast<OrderDecl>(item));
  case Item::Kind::Tensor:
    return printItem(llvm::cast<TensorDecl>(item));
  case Item::Kind::Output:
    return printItem(llvm::cast<OutputDecl>(item));
  case Item::Kind::Layer:
    return printItem(llvm::cast<LayerDecl>(item));
  case Item::Kind::Train:
    return printItem(llvm::cast<TrainBlock>(item));
  case Item::Kind::Serve:
    return printItem(llvm::cast<ServeBlock>(item));
  case Item::Kind::Layout:
    return print(llvm::cast<LayoutDecl>(item).layout);
  case Item::Kind::Repeat:
    return printItem(llvm::cast<RepeatStmt>(item));
  case Item::Kind::Assign:
    return printItem(llvm::cast<AssignStmt>(item));
  case Item::Kind::Broken:
    return; // files with errors are not printed
  }
}

void ast::print(llvm::raw_ostream &os, const File &file) {
  os << "file\n";
  Printer printer(os);
  for (const ItemPtr &item : file.items)
    printer.print(*item);
}
