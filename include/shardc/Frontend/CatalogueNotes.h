//===- CatalogueNotes.h - What hardware files say of figures --*- C++ -*-===//
//
// The source of each figure of the catalogue stands beside it in its file, as
// the comment behind the field.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_CATALOGUENOTES_H
#define SHARDC_FRONTEND_CATALOGUENOTES_H

#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardc {

struct CatalogueNotes {
  /// The comment that the file begins with, by line.
  std::vector<std::string> about;
  /// The comment behind each field, by `hbm.capacity`, `ici.link.bandwidth`.
  std::map<std::string, std::string> sources;

  /// Empty where the file says nothing.
  llvm::StringRef source(llvm::StringRef field) const {
    auto it = sources.find(field.str());
    return it == sources.end() ? llvm::StringRef() : it->second;
  }
};

/// The notes of a machine of the catalogue, or nothing if the name is not in
/// it.
std::optional<CatalogueNotes> catalogueNotes(llvm::StringRef name);

} // namespace shardc

#endif // SHARDC_FRONTEND_CATALOGUENOTES_H
