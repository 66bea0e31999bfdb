//===- Names.cpp - Lists of index names and near misses -------------------===//

#include "Names.h"
#include "shardc/Machine/Machine.h"

using namespace shardc;

void shardc::addNames(IndexNames &names, IndexNamesRef more) {
  for (mlir::StringAttr name : more)
    if (!contains(names, name))
      names.push_back(name);
}

bool shardc::sameSet(IndexNamesRef a, IndexNamesRef b) {
  return a.size() == b.size() && llvm::all_of(a, [&](mlir::StringAttr name) {
           return contains(b, name);
         });
}

std::string shardc::toString(IndexNamesRef names) {
  std::string text = "[";
  for (auto [i, name] : llvm::enumerate(names)) {
    if (i)
      text += ", ";
    text += name.getValue();
  }
  return text + "]";
}

std::string shardc::counted(size_t count, llvm::StringRef noun) {
  std::string text = std::to_string(count) + " ";
  if (count == 1)
    return text + noun.str();
  return text + (noun == "index" ? "indices" : noun.str() + "s");
}

std::optional<std::string>
shardc::likelyName(llvm::StringRef name,
                   llvm::ArrayRef<llvm::StringRef> candidates) {
  for (llvm::StringRef candidate : candidates)
    if (candidate.equals_insensitive(name))
      return candidate.str();
  // A name of one letter is one edit away from every other one.
  unsigned limit = std::min<size_t>(2, name.size() / 2);
  llvm::StringRef nearest =
      limit ? nearestName(name, candidates, limit) : llvm::StringRef();
  if (nearest.empty())
    return std::nullopt;
  return nearest.str();
}
