//===- AstBuilder.h - From ANTLR's parse trees to the AST -----*- C++ -*-===//
//
// One function for each rule that the parser calls. What the grammar admits and
// the syntax does not (numbers that do not fit, a range outside a function's
// brackets) is an error here.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_ASTBUILDER_H
#define SHARDC_LIB_FRONTEND_ASTBUILDER_H

#include "ShdParser.h"
#include "Source.h"
#include "shardc/Frontend/Ast.h"
#include "llvm/ADT/StringRef.h"

namespace shardc {

class AstBuilder {
public:
  using Parser = grammar::ShdParser;

  /// Expressions may be this many operations deep; a sum of n terms counts
  /// n - 1. Later stages may recurse over expressions.
  static constexpr unsigned maxHeight = 1000;

  AstBuilder(SourceFiles &files, llvm::StringRef buffer)
      : files(files), buffer(buffer) {}

  ast::ItemPtr build(Parser::ImportDeclContext *context);
  ast::ItemPtr build(Parser::HardwareDeclContext *context);
  std::unique_ptr<ast::HardwareDecl>
  build(Parser::HardwareSpecContext *context);
  ast::ItemPtr build(Parser::MeshDeclContext *context);
  std::unique_ptr<ast::MeshDecl> build(Parser::MeshSpecContext *context);
  ast::ItemPtr build(Parser::DimDeclContext *context);
  ast::DimDef build(Parser::DimDefContext *context);
  ast::ItemPtr build(Parser::OrderDeclContext *context);
  ast::ItemPtr build(Parser::PlacingContext *context);
  std::unique_ptr<ast::Question> build(Parser::QuestionContext *context);
  ast::ItemPtr build(Parser::TensorDeclContext *context);
  ast::ItemPtr build(Parser::OutputDeclContext *context);
  ast::ItemPtr build(Parser::TrainBlockContext *context);
  ast::ItemPtr build(Parser::ServeBlockContext *context);
  ast::ItemPtr build(Parser::AssignStmtContext *context);
  /// Without their bodies.
  std::unique_ptr<ast::LayerDecl> build(Parser::LayerHeadContext *context);
  std::unique_ptr<ast::RepeatStmt> build(Parser::RepeatHeadContext *context);

private:
  /// An expression and the number of operations on its longest path.
  template <typename T> struct Tree {
    std::unique_ptr<T> root;
    unsigned height = 1;
  };
  using ExprTree = Tree<ast::Expr>;
  using DimTree = Tree<ast::DimExpr>;

  llvm::SMRange range(antlr4::Token *token);
  llvm::SMRange range(antlr4::ParserRuleContext *context);
  llvm::StringRef text(llvm::SMRange range);
  ast::Name name(antlr4::tree::TerminalNode *node);
  ast::Name name(Parser::NameContext *context);
  std::vector<ast::Name> names(const std::vector<Parser::NameContext *> &list);
  int64_t integer(llvm::SMRange range);
  int64_t integer(Parser::IntegerContext *context);
  ast::Question::Value value(Parser::IntegerContext *context);
  double real(llvm::SMRange range);

  ast::HardwareFieldDecl field(Parser::HwFieldContext *context);
  ast::CalibrationDecl calibration(Parser::CalibrationContext *context);
  ast::HardwareValue value(Parser::HwValueContext *context);
  ast::NetworkDecl network(Parser::NetworkContext *context);

  ast::DimExprPtr extent(Parser::DimExprContext *context);
  DimTree dimExpr(Parser::DimExprContext *context);
  DimTree dimTerm(Parser::DimTermContext *context);
  DimTree dimUnary(Parser::DimUnaryContext *context);
  DimTree dimPrimary(Parser::DimPrimaryContext *context);

  std::optional<ast::Placement> placement(Parser::PlacementContext *context);
  std::optional<ast::Partial> partial(Parser::PartialContext *context);
  ast::IndexList dims(Parser::DimsContext *context, bool mayBePartial = false);
  ast::PlacedTensor placed(Parser::PlacedTensorContext *context,
                           bool mayBePartial);
  ast::StepLayout layout(Parser::PlacingContext *context);
  void addPlaced(Parser::PlacingContext *context, ast::TrainBlock &block);
  ast::Parameter parameter(Parser::ParamContext *context);
  ast::SettingValue settingValue(antlr4::ParserRuleContext *context,
                                 Parser::DimExprContext *number);
  ast::SettingValue settingValue(Parser::SettingValueContext *context);
  ast::Setting
  setting(Parser::NameContext *key,
          const std::vector<Parser::SettingValueContext *> &values);

  ast::Target target(Parser::TargetContext *context);
  ExprTree expr(Parser::ExprContext *context);
  ExprTree sumExpr(Parser::SumExprContext *context);
  ExprTree product(Parser::ProductContext *context);
  ExprTree unary(Parser::UnaryContext *context);
  ExprTree primary(Parser::PrimaryContext *context);
  ExprTree number(Parser::NumberContext *context);
  ExprTree reference(Parser::ReferenceContext *context);
  ExprTree call(ast::Name name, Parser::BracketsContext *brackets,
                Parser::CallArgumentsContext *arguments);
  unsigned argument(Parser::ArgumentContext *context, ast::Expr &call);
  ExprTree argumentValue(Parser::ArgumentValueContext *context);
  ast::IndexList indexList(Parser::BracketsContext *brackets,
                           Parser::PartialContext *partial, unsigned &height);
  ast::Index index(Parser::EntryContext *entry, unsigned &height);
  std::vector<ast::FunctionIndex>
  functionIndices(Parser::BracketsContext *brackets);
  ast::FunctionIndex functionIndex(Parser::EntryContext *entry);
  std::vector<ast::Name>
  group(const std::vector<Parser::PlacedNameContext *> &list,
        std::optional<ast::Placement> &placed);
  bool namesOf(const ast::Expr &expr, std::vector<ast::Name> &result);

  /// Puts an operation above its operands, unless it would be too high.
  template <typename T>
  Tree<T> combine(typename T::Kind kind, llvm::SMRange range, Tree<T> first,
                  Tree<T> second = {});

  SourceFiles &files;
  llvm::StringRef buffer;
  /// The statement has been reported as too long.
  bool reportedHeight = false;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_ASTBUILDER_H
