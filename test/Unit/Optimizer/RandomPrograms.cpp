//===- RandomPrograms.cpp - Small random programs -------------------------===//

#include "RandomPrograms.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <random>
#include <vector>

using namespace shardc;

namespace {

/// A set of the indices I, J, K: bits 0 to 2.
using Indices = unsigned;

struct Tensor {
  std::string name;
  Indices indices = 0;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed), os(text) {}

  std::string run();

private:
  unsigned below(unsigned bound) { return random() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[below(list.size())];
  }
  std::string fresh() { return "v" + std::to_string(counter++); }

  std::string list(Indices indices, bool mayPin);
  std::string reference(const Tensor &tensor);
  void declare(const char *kind, const char *type, std::vector<Tensor> &into);
  Indices oneOf(Indices indices);
  Tensor statement();
  Tensor product();
  Tensor lightStatement();
  void loop();

  std::mt19937_64 random;
  std::string text;
  llvm::raw_string_ostream os;
  unsigned counter = 0;
  std::vector<Tensor> values, quantized, rebindable;
};

/// `[I, J]`, or with a placement on a mesh of X = 2 and Y = 4.
std::string Generator::list(Indices indices, bool mayPin) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < 3; ++i)
    if (indices & (1u << i))
      names.push_back(std::string(1, "IJK"[i]));
  if (mayPin && !names.empty()) {
    static const char *const both[] = {"@(X, Y)", "@(Y, X)"};
    if (chance(30)) {
      names[below(names.size())] += both[below(2)];
    } else {
      unsigned first = below(names.size()), second = below(names.size());
      names[first] += "@X";
      if (second != first)
        names[second] += "@Y";
    }
    std::string &last = names.back();
    if (last.size() == 1 && chance(40))
      last += "@?";
  }
  return "[" + llvm::join(names, ", ") + "]";
}

std::string Generator::reference(const Tensor &tensor) {
  return tensor.name + list(tensor.indices, false);
}

void Generator::declare(const char *kind, const char *type,
                        std::vector<Tensor> &into) {
  Tensor tensor{fresh(), 1 + below(7)};
  os << kind << " " << tensor.name << ": " << type
     << list(tensor.indices, chance(20)) << "\n";
  into.push_back(tensor);
}

Indices Generator::oneOf(Indices indices) {
  while (true)
    if (Indices index = 1u << below(3); indices & index)
      return index;
}

/// A product that sums some index where it can, perhaps of a cast weight, with
/// something after it.
Tensor Generator::product() {
  Tensor a = pick(values), b = pick(values);
  std::string right = reference(b);
  if (!quantized.empty() && chance(30)) {
    b = pick(quantized);
    right = "bf16(" + reference(b) + ")";
  }
  Indices all = a.indices | b.indices, shared = a.indices & b.indices;
  Tensor result{fresh(), all};
  if (shared)
    result.indices &= ~oneOf(shared);
  std::string body = reference(a) + " * " + right;
  if (chance(30))
    body = "relu(" + body + ")";
  if (chance(30)) {
    const Tensor &c = pick(values);
    if (!(c.indices & ~result.indices))
      body += " + " + reference(c);
  }
  os << result.name << list(result.indices, chance(20)) << " = " << body
     << "\n";
  return result;
}

Tensor Generator::lightStatement() {
  static const char *const functions[] = {"relu", "neg", "exp", "silu"};
  Tensor a = pick(values);
  Tensor result{fresh(), a.indices};
  unsigned position =
      llvm::countr_zero(oneOf(a.indices ? a.indices : Indices(1)));
  std::string index(1, "IJK"[position]);
  std::string body;
  unsigned kind = a.indices ? below(6) : 0;
  if (kind == 0) {
    body = std::string(functions[below(4)]) + "(" + reference(a) + ")";
  } else if (kind == 1) {
    const Tensor &b = pick(values);
    result.indices |= b.indices;
    body = reference(a) + " + " + reference(b);
  } else if (kind == 2) {
    body = reference(a);
  } else if (kind == 3) {
    body = "softmax[" + index + "](" + reference(a) + ")";
  } else {
    result.indices &= ~(1u << position);
    body = (kind == 4 ? "sum[" : "max[") + index + "](" + reference(a) + ")";
  }
  os << result.name << list(result.indices, chance(20)) << " = " << body
     << "\n";
  return result;
}

Tensor Generator::statement() {
  return chance(50) ? product() : lightStatement();
}

/// A loop that carries one value; what is made inside stays inside.
void Generator::loop() {
  if (rebindable.empty())
    return;
  Tensor carried = pick(rebindable);
  std::vector<Tensor> outside = values;
  os << "repeat L {\n";
  if (chance(70))
    declare("weight", "bf16", values);
  for (unsigned i = 0, n = 1 + below(3); i < n; ++i)
    values.push_back(statement());
  const Tensor &last = values.back();
  std::string body = reference(carried);
  if (!(last.indices & ~carried.indices))
    body += " + " + reference(last);
  os << carried.name << list(carried.indices, chance(20)) << " = " << body
     << "\n}\n";
  values = outside;
}

std::string Generator::run() {
  os << "hardware h100[8]\nmesh [X=2, Y=4]\n"
        "dim I = 64, J = 32, K = 16, L = 3\n";
  for (unsigned i = 0; i < 2; ++i)
    declare("input", "bf16", values);
  for (unsigned i = 0; i < 2; ++i)
    declare("weight", "bf16", values);
  declare("weight", "int8", quantized);
  for (unsigned i = 0, n = 4 + below(6); i < n; ++i) {
    if (chance(20)) {
      loop();
      continue;
    }
    Tensor made = statement();
    values.push_back(made);
    rebindable.push_back(made);
  }
  os << "output " << values.back().name << "\n";
  if (!rebindable.empty() && rebindable.front().name != values.back().name)
    os << "output " << rebindable.front().name
       << list(rebindable.front().indices, chance(20)) << "\n";
  return text;
}

} // namespace

std::string test::randomProgram(uint64_t seed) { return Generator(seed).run(); }
