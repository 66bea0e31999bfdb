//===- LayerNames.h - Names in layers that nothing calls -------*- C++ -*-===//

#ifndef SHARDC_LIB_FRONTEND_LAYERNAMES_H
#define SHARDC_LIB_FRONTEND_LAYERNAMES_H

#include "Importer.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {

/// Reports what is wrong with the names in one layer, whatever it is called
/// with.
class LayerNameChecker {
public:
  LayerNameChecker(Importer &importer, const ast::LayerDecl &layer)
      : importer(importer), layer(layer),
        scope(Scope::Kind::Layer, &importer.fileScope) {}

  void check();

private:
  void check(const std::vector<ast::ItemPtr> &items);
  void check(const ast::AssignStmt &assign);
  void check(const ast::IndexList &list);
  void check(const ast::Expr &expr);
  void checkTensor(const ast::Name &name);
  void checkCall(const ast::Expr &call);
  bool reaches(const ast::LayerDecl &from,
               llvm::SmallPtrSetImpl<const ast::LayerDecl *> &seen,
               std::string &path);

  Importer &importer;
  const ast::LayerDecl &layer;
  /// The names of the file that the layer sees.
  Scope scope;
  /// Other names that mean something at the current place.
  llvm::StringSet<> known;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_LAYERNAMES_H
