//===- Dims.cpp - Extents of indices
//---------------------------------------===//

#include "Dims.h"
#include "Names.h"
#include "llvm/Support/MathExtras.h"

using namespace shardc;
using ast::DimExpr;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

std::optional<int64_t> shardc::dimArithmetic(DimExpr::Kind kind, int64_t a,
                                             int64_t b, std::string &why) {
  int64_t result = 0;
  bool overflow = false;
  switch (kind) {
  case DimExpr::Kind::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case DimExpr::Kind::Sub:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case DimExpr::Kind::Mul:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case DimExpr::Kind::Div:
  case DimExpr::Kind::Rem:
    if (b == 0) {
      why = std::to_string(a) + " is divided by zero";
      return std::nullopt;
    }
    // The one quotient that does not fit.
    overflow = a == INT64_MIN && b == -1;
    if (overflow)
      break;
    if (kind == DimExpr::Kind::Rem)
      return a % b;
    if (a % b != 0) {
      why = std::to_string(a) + " is not divisible by " + std::to_string(b);
      return std::nullopt;
    }
    return a / b;
  default:
    llvm_unreachable("not an operator of two operands");
  }
  if (!overflow)
    return result;
  why = "the result does not fit 64 bits";
  return std::nullopt;
}

std::optional<int64_t> shardc::dimFunction(llvm::StringRef name,
                                           llvm::ArrayRef<int64_t> arguments,
                                           std::string &why) {
  if (name == "ceildiv") {
    if (arguments.size() != 2) {
      why = "'ceildiv' takes 2 arguments, but has " +
            std::to_string(arguments.size());
      return std::nullopt;
    }
    int64_t a = arguments[0], b = arguments[1];
    if (b == 0)
      why = std::to_string(a) + " is divided by zero";
    else if (a == INT64_MIN && b == -1)
      why = "the result does not fit 64 bits";
    else
      return a / b + (a % b != 0 && (a < 0) == (b < 0));
    return std::nullopt;
  }
  if (name != "min" && name != "max") {
    why = "unknown function '" + name.str() +
          "' of dims; there are 'min', 'max' and 'ceildiv'";
    return std::nullopt;
  }
  if (arguments.empty()) {
    why = "'" + name.str() + "' takes at least 1 argument";
    return std::nullopt;
  }
  return name == "min" ? *llvm::min_element(arguments)
                       : *llvm::max_element(arguments);
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

void DimScope::define(const ast::DimDef &def) {
  auto [it, inserted] = entries.try_emplace(def.name.text);
  if (!inserted) {
    auto diag = files.error(def.name.range)
                << "dim '" << def.name.text << "' is defined twice";
    diag.attachNote(files.location(it->second.where)) << "first defined here";
    return;
  }
  it->second.value = def.value.get();
  it->second.where = def.name.range;
  order.push_back(it->first());
}

void DimScope::bind(llvm::StringRef name, std::optional<int64_t> extent,
                    llvm::SMRange where, bool isNone) {
  Entry &entry = entries[name];
  entry.where = where;
  entry.extent = extent.value_or(0);
  entry.state = isNone   ? Entry::State::None
                : extent ? Entry::State::Done
                         : Entry::State::Failed;
}

bool DimScope::replace(const ast::DimDef &def) {
  auto it = entries.find(def.name.text);
  if (it == entries.end()) {
    auto diag = files.error(def.name.range)
                << "the program defines no dim '" << def.name.text << "'";
    if (auto near = likelyName(def.name.text, names()))
      diag.attachNote() << "did you mean '" << *near << "'?";
    return false;
  }
  it->second.value = def.value.get();
  return true;
}

const DimScope::Entry *DimScope::find(llvm::StringRef name) const {
  for (const DimScope *scope = this; scope; scope = scope->parent)
    if (auto it = scope->entries.find(name); it != scope->entries.end())
      return &it->second;
  return nullptr;
}

bool DimScope::isNone(llvm::StringRef name) const {
  const Entry *entry = find(name);
  return entry && entry->state == Entry::State::None;
}

llvm::SMRange DimScope::definition(llvm::StringRef name) const {
  const Entry *entry = find(name);
  return entry ? entry->where : llvm::SMRange();
}

std::vector<llvm::StringRef> DimScope::names() const {
  std::vector<llvm::StringRef> result;
  for (const DimScope *scope = this; scope; scope = scope->parent) {
    size_t begin = result.size();
    for (const auto &entry : scope->entries)
      result.push_back(entry.first());
    std::sort(result.begin() + begin, result.end());
  }
  return result;
}

void DimScope::reportUnknown(llvm::StringRef name, llvm::SMRange use) {
  auto diag = files.error(use)
              << "unknown index '" << name << "': no dim has this name";
  if (auto near = likelyName(name, names()))
    diag.attachNote() << "did you mean '" << *near << "'?";
}

std::optional<int64_t> DimScope::extent(llvm::StringRef name,
                                        llvm::SMRange use) {
  for (DimScope *scope = this; scope; scope = scope->parent) {
    auto it = scope->entries.find(name);
    if (it == scope->entries.end())
      continue;
    Entry &entry = it->second;
    if (entry.state == Entry::State::New)
      scope->resolve(it->first());
    if (entry.state == Entry::State::None) {
      auto diag = files.error(use)
                  << "'" << name << "' is none here, so it has no extent";
      diag.attachNote(files.location(entry.where)) << "the argument is here";
    }
    if (entry.state != Entry::State::Done)
      return std::nullopt;
    return entry.extent;
  }
  reportUnknown(name, use);
  // Reported once: later uses of the name stay silent.
  entries[name].state = Entry::State::Failed;
  entries[name].where = use;
  return std::nullopt;
}

void DimScope::evaluateAll() {
  for (llvm::StringRef name : order)
    if (entries[name].state == Entry::State::New)
      resolve(name);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Calls `visit` for each node, operands first, without recursion.
template <typename Visit>
static void postOrder(const DimExpr &root, Visit visit) {
  llvm::SmallVector<std::pair<const DimExpr *, unsigned>> stack{{&root, 0}};
  while (!stack.empty()) {
    auto &[expr, next] = stack.back();
    if (next < expr->operands.size()) {
      const DimExpr *operand = expr->operands[next++].get();
      stack.push_back({operand, 0});
      continue;
    }
    const DimExpr *done = expr;
    stack.pop_back();
    visit(*done);
  }
}

void DimScope::reportCycle(llvm::ArrayRef<llvm::StringRef> active,
                           llvm::StringRef again) {
  constexpr size_t shown = 8;
  llvm::ArrayRef<llvm::StringRef> cycle(llvm::find(active, again),
                                        active.end());
  std::string path;
  for (llvm::StringRef name : cycle.take_front(shown))
    path += name.str() + " -> ";
  if (cycle.size() > shown)
    path += "... -> ";
  auto diag = files.error(entries[again].where)
              << "circular definition of dim '" << again << "': " << path
              << again;
  for (llvm::StringRef name : cycle.take_front(shown).drop_front())
    diag.attachNote(files.location(entries[name].where))
        << "'" << name << "' is defined here";
  for (llvm::StringRef name : cycle)
    entries[name].state = Entry::State::Failed;
}

void DimScope::resolve(llvm::StringRef root) {
  struct Pending {
    llvm::StringRef name;
    llvm::SmallVector<llvm::StringRef, 4> needs;
  };
  std::vector<Pending> stack;
  auto push = [&](llvm::StringRef name) {
    Entry &entry = entries[name];
    entry.state = Entry::State::Active;
    Pending pending{name, {}};
    postOrder(*entry.value, [&](const DimExpr &expr) {
      if (expr.kind == DimExpr::Kind::Name && entries.contains(expr.name))
        pending.needs.push_back(expr.name);
    });
    std::reverse(pending.needs.begin(), pending.needs.end());
    stack.push_back(std::move(pending));
  };
  push(root);
  while (!stack.empty()) {
    if (stack.back().needs.empty()) {
      llvm::StringRef name = stack.back().name;
      stack.pop_back();
      if (entries[name].state == Entry::State::Active)
        finish(name, entries[name]);
      continue;
    }
    llvm::StringRef need = stack.back().needs.pop_back_val();
    if (entries[need].state == Entry::State::New) {
      push(need);
    } else if (entries[need].state == Entry::State::Active) {
      llvm::SmallVector<llvm::StringRef> active;
      for (const Pending &pending : stack)
        active.push_back(pending.name);
      reportCycle(active, need);
    }
  }
}

void DimScope::finish(llvm::StringRef name, Entry &entry) {
  entry.state = Entry::State::Failed;
  std::optional<int64_t> value = evaluate(*entry.value);
  if (!value)
    return;
  if (*value < 1) {
    files.error(entry.value->range) << "dim '" << name << "' is " << *value
                                    << ", but an extent is at least 1";
    return;
  }
  entry.extent = *value;
  entry.state = Entry::State::Done;
}

std::optional<int64_t> DimScope::evaluate(const DimExpr &root) {
  llvm::SmallVector<int64_t> values;
  bool failed = false;
  postOrder(root, [&](const DimExpr &expr) {
    std::optional<int64_t> value;
    if (expr.kind == DimExpr::Kind::Name) {
      value = extent(expr.name, expr.range);
      failed |= !value;
    } else if (!failed) {
      auto operands = llvm::ArrayRef(values).take_back(expr.operands.size());
      value = apply(expr, operands);
      failed |= !value;
    }
    if (expr.kind != DimExpr::Kind::Name && !failed)
      values.truncate(values.size() - expr.operands.size());
    values.push_back(value.value_or(0));
  });
  if (failed)
    return std::nullopt;
  return values.back();
}

std::optional<int64_t> DimScope::apply(const DimExpr &expr,
                                       llvm::ArrayRef<int64_t> operands) {
  std::string why;
  std::optional<int64_t> result;
  switch (expr.kind) {
  case DimExpr::Kind::Integer:
    return expr.integer;
  case DimExpr::Kind::Name:
    llvm_unreachable("names are looked up by the caller");
  case DimExpr::Kind::Negate:
    result = dimArithmetic(DimExpr::Kind::Sub, 0, operands[0], why);
    break;
  case DimExpr::Kind::Call:
    result = dimFunction(expr.name, operands, why);
    break;
  default:
    result = dimArithmetic(expr.kind, operands[0], operands[1], why);
    break;
  }
  if (!result)
    files.error(expr.range) << why;
  return result;
}
