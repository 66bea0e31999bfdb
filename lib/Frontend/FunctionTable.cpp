//===- FunctionTable.cpp - The language's functions -----------------------===//

#include "FunctionTable.h"
#include "llvm/ADT/StringMap.h"

using namespace shardc;
using shd::Function;
using shd::Normalization;
using shd::Reduction;

static const FunctionParameter kUnary[] = {{"x"}};
static const FunctionParameter kBinary[] = {{"a"}, {"b"}};
static const FunctionParameter kWhere[] = {{"cond"}, {"a"}, {"b"}};
static const FunctionParameter kRmsNorm[] = {
    {"x"}, {"scale", false}, {"eps", false}};
static const FunctionParameter kLayerNorm[] = {
    {"x"}, {"scale", false}, {"bias", false}, {"eps", false}};
static const FunctionParameter kAttention[] = {{"q"},
                                               {"k"},
                                               {"v"},
                                               {"causal", false},
                                               {"window", false},
                                               {"at", false},
                                               {"scale", false},
                                               {"softcap", false},
                                               {"sink", false},
                                               {"bias", false},
                                               {"key_at", false}};
static const FunctionParameter kRope[] = {
    {"x"}, {"at", false}, {"theta", false}};
static const FunctionParameter kLabels[] = {
    {"logits"}, {"labels"}, {"chunks", false}};
static const FunctionParameter kTopK[] = {{"x"}, {"k", false}};
static const FunctionParameter kDispatch[] = {{"x"},
                                              {"pick"},
                                              {"k", false},
                                              {"blocks", false},
                                              {"limit", false},
                                              {"dropless", false},
                                              {"imbalance", false}};
static const FunctionParameter kCombine[] = {{"y"},
                                             {"pick"},
                                             {"weights", false},
                                             {"k", false},
                                             {"blocks", false},
                                             {"limit", false},
                                             {"dropless", false},
                                             {"imbalance", false}};

static FunctionInfo elementwise(llvm::StringRef name, Function function,
                                llvm::ArrayRef<FunctionParameter> parameters,
                                llvm::StringRef usage) {
  return {name,
          FunctionKind::Elementwise,
          uint32_t(function),
          BracketKind::None,
          0,
          0,
          parameters,
          usage};
}

static FunctionInfo reduction(llvm::StringRef name, Reduction kind,
                              llvm::StringRef usage) {
  unsigned most = kind == Reduction::ArgMax ? 1 : ~0u;
  return {name,
          FunctionKind::Reduction,
          uint32_t(kind),
          BracketKind::Names,
          1,
          most,
          kUnary,
          usage};
}

static FunctionInfo normalization(llvm::StringRef name, Normalization kind,
                                  llvm::ArrayRef<FunctionParameter> parameters,
                                  llvm::StringRef usage) {
  return {name,
          FunctionKind::Normalization,
          uint32_t(kind),
          BracketKind::Names,
          1,
          ~0u,
          parameters,
          usage};
}

static FunctionInfo structured(llvm::StringRef name, FunctionKind kind,
                               BracketKind brackets, unsigned min, unsigned max,
                               llvm::ArrayRef<FunctionParameter> parameters,
                               llvm::StringRef usage) {
  return {name, kind, 0, brackets, min, max, parameters, usage};
}

static const std::vector<FunctionInfo> &table() {
  static const std::vector<FunctionInfo> functions = {
      elementwise("relu", Function::Relu, kUnary, "relu(x)"),
      elementwise("gelu", Function::Gelu, kUnary, "gelu(x)"),
      elementwise("silu", Function::Silu, kUnary, "silu(x)"),
      elementwise("sigmoid", Function::Sigmoid, kUnary, "sigmoid(x)"),
      elementwise("tanh", Function::Tanh, kUnary, "tanh(x)"),
      elementwise("exp", Function::Exp, kUnary, "exp(x)"),
      elementwise("log", Function::Log, kUnary, "log(x)"),
      elementwise("sqrt", Function::Sqrt, kUnary, "sqrt(x)"),
      elementwise("rsqrt", Function::Rsqrt, kUnary, "rsqrt(x)"),
      elementwise("square", Function::Square, kUnary, "square(x)"),
      elementwise("abs", Function::Abs, kUnary, "abs(x)"),
      elementwise("neg", Function::Neg, kUnary, "neg(x)"),
      elementwise("stop_gradient", Function::StopGradient, kUnary,
                  "stop_gradient(x)"),
      elementwise("maximum", Function::Maximum, kBinary, "maximum(a, b)"),
      elementwise("minimum", Function::Minimum, kBinary, "minimum(a, b)"),
      elementwise("where", Function::Where, kWhere, "where(cond, a, b)"),
      reduction("sum", Reduction::Sum, "sum[I](x)"),
      reduction("max", Reduction::Max, "max[I](x)"),
      reduction("min", Reduction::Min, "min[I](x)"),
      reduction("mean", Reduction::Mean, "mean[I](x)"),
      reduction("argmax", Reduction::ArgMax, "argmax[I](x)"),
      normalization("softmax", Normalization::Softmax, kUnary, "softmax[I](x)"),
      normalization("logsumexp", Normalization::LogSumExp, kUnary,
                    "logsumexp[I](x)"),
      normalization("rmsnorm", Normalization::RmsNorm, kRmsNorm,
                    "rmsnorm[I](x, scale, eps=1e-6)"),
      normalization("layernorm", Normalization::LayerNorm, kLayerNorm,
                    "layernorm[I](x, scale, bias, eps=1e-6)"),
      structured("attention", FunctionKind::Attention, BracketKind::Names, 2, 2,
                 kAttention,
                 "attention[H, S](q, k, v, causal=false, window=none, at=none, "
                 "scale=none, softcap=none, sink=none, bias=none, "
                 "key_at=none)"),
      structured("rope", FunctionKind::Rope, BracketKind::Names, 1, 2, kRope,
                 "rope[T, H](x, theta=10000) or rope[H](x, at=pos[B])"),
      structured("cross_entropy", FunctionKind::CrossEntropy,
                 BracketKind::Names, 1, 1, kLabels,
                 "cross_entropy[V](logits, labels, chunks=none)"),
      structured("topk", FunctionKind::TopK, BracketKind::Names, 1, 1, kTopK,
                 "topk[I](x, k=2)"),
      structured("dispatch", FunctionKind::Dispatch, BracketKind::Names, 2, 2,
                 kDispatch,
                 "dispatch[E, C](x, pick, k=2, blocks=none, limit=none, "
                 "dropless=false, imbalance=none)"),
      structured("combine", FunctionKind::Combine, BracketKind::Names, 2, 2,
                 kCombine,
                 "combine[E, C](y, pick, weights, k=2, blocks=none, "
                 "limit=none, dropless=false, imbalance=none)"),
      structured("split", FunctionKind::Split, BracketKind::Group, 1, 1, kUnary,
                 "split[D -> (A, B)](x)"),
      structured("merge", FunctionKind::Merge, BracketKind::Group, 1, 1, kUnary,
                 "merge[(A, B) -> D](x)"),
      structured("slice", FunctionKind::Slice, BracketKind::Range, 1, 1, kUnary,
                 "slice[I: lo..hi -> J](x)"),
      structured("concat", FunctionKind::Concat, BracketKind::Group, 1, 1, {},
                 "concat[(I1, I2) -> I](x, y)"),
  };
  return functions;
}

const FunctionInfo *shardc::findFunction(llvm::StringRef name) {
  static const llvm::StringMap<const FunctionInfo *> index = [] {
    llvm::StringMap<const FunctionInfo *> result;
    for (const FunctionInfo &info : table())
      result[info.name] = &info;
    return result;
  }();
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

std::vector<llvm::StringRef> shardc::functionNames() {
  std::vector<llvm::StringRef> names;
  for (const FunctionInfo &info : table())
    names.push_back(info.name);
  return names;
}
