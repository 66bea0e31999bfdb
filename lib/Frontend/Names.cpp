//===- Names.cpp - Lists of index names and near misses -------------------===//

#include "Names.h"
#include "shardc/Machine/Machine.h"
#include "llvm/ADT/StringSwitch.h"

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

std::optional<llvm::StringRef> shardc::likelyElementType(llvm::StringRef name) {
  llvm::StringRef type =
      llvm::StringSwitch<llvm::StringRef>(name.lower())
          .Cases({"bfloat16", "bf16"}, "bf16")
          .Cases({"float32", "fp32", "float", "f32"}, "f32")
          .Cases({"float16", "fp16", "half", "f16"}, "f16")
          .Cases({"float64", "fp64", "double", "f64"}, "f64")
          .Cases({"float8", "fp8", "float8_e4m3fn", "f8"}, "f8e4m3")
          .Case("float8_e5m2", "f8e5m2")
          .Cases({"float8_e8m0fnu", "f8e8m0fnu", "e8m0", "ue8m0"}, "f8e8m0")
          .Cases({"float4", "fp4", "f4"}, "f4e2m1")
          .Cases({"i32", "int", "int64", "i64", "s32"}, "int32")
          .Cases({"i16", "s16"}, "int16")
          .Cases({"i8", "s8"}, "int8")
          .Cases({"u8", "byte"}, "uint8")
          .Cases({"i1", "boolean", "pred"}, "bool")
          .Default("");
  return type.empty() ? std::nullopt : std::optional(type);
}
