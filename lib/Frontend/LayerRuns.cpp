//===- LayerRuns.cpp - Statements that repeat -----------------------------===//
//
// Layers are alike if their statements, one after another, have the same text
// but for the names of tensors. Names are followed from definition to use: what
// a layer reads is the same for all, its own, of the layer before, or a weight
// that no other layer has.
//
//===----------------------------------------------------------------------===//

#include "LayerRuns.h"
#include "shardc/Frontend/TextEdits.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;
using namespace shardc;

/// Statements of one layer at most: a run is looked for at every distance.
static constexpr size_t kMaxPeriod = 1000;
/// Runs that are tried.
static constexpr size_t kMaxRuns = 200;

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

namespace {
/// Collects the names of tensors in a line, in the order of the text.
class ReferenceCollector {
public:
  ReferenceCollector(Line &line, const StringSet<> &layers)
      : line(line), references(line.references), layers(layers) {}

  void collect(const ast::Item &item);

private:
  void add(SMRange range, bool reads, bool writes);
  void collect(const ast::Expr &root);
  void collect(const std::optional<ast::IndexList> &list);

  Line &line;
  std::vector<TensorReference> &references;
  /// Layers of the file.
  const StringSet<> &layers;
};
} // namespace

void ReferenceCollector::add(SMRange range, bool reads, bool writes) {
  references.push_back({textOf(range), reads, writes});
}

void ReferenceCollector::collect(const std::optional<ast::IndexList> &list) {
  if (!list)
    return;
  for (const ast::Index &index : list->indices)
    if (index.gather)
      collect(*index.gather);
}

/// Without recursion: an expression may be as deep as a statement is long.
void ReferenceCollector::collect(const ast::Expr &root) {
  SmallVector<const ast::Expr *> work{&root};
  while (!work.empty()) {
    const ast::Expr *expr = work.pop_back_val();
    if (expr->kind == ast::Expr::Kind::Ref)
      add(expr->nameRange, /*reads=*/true, /*writes=*/false);
    if (expr->kind == ast::Expr::Kind::Call)
      line.callsLayer |= layers.contains(expr->name);
    collect(expr->indices);
    for (const ast::Argument &argument : reverse(expr->arguments))
      work.push_back(argument.value.get());
    for (const ast::ExprPtr &operand : reverse(expr->operands))
      work.push_back(operand.get());
  }
}

void ReferenceCollector::collect(const ast::Item &item) {
  if (auto *tensor = dyn_cast<ast::TensorDecl>(&item))
    return add(tensor->name.range, /*reads=*/false, /*writes=*/true);
  if (auto *output = dyn_cast<ast::OutputDecl>(&item))
    return add(output->name.range, /*reads=*/true, /*writes=*/false);
  if (auto *repeat = dyn_cast<ast::RepeatStmt>(&item)) {
    for (const ast::Name &name : repeat->save)
      add(name.range, /*reads=*/true, /*writes=*/false);
    for (const ast::ItemPtr &inner : repeat->body)
      collect(*inner);
  }
  auto *assign = dyn_cast<ast::AssignStmt>(&item);
  if (!assign)
    return;
  for (const ast::Target &target : assign->targets) {
    // A gather on the left leaves the rest of the tensor as it was.
    auto isGather = [](const ast::Index &index) { return bool(index.gather); };
    bool isPart = target.indices && any_of(target.indices->indices, isGather);
    add(target.name.range, /*reads=*/assign->accumulate || isPart,
        /*writes=*/true);
    collect(target.indices);
  }
  collect(*assign->value);
  llvm::sort(references, [](const auto &a, const auto &b) {
    return a.text.data() < b.text.data();
  });
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// Text with one space for any white space and comments.
static void appendSpaced(std::string &result, StringRef text) {
  while (!text.empty()) {
    text = withoutComment(text);
    bool isGap = text.empty() || isSpace(text.front());
    if (!isGap)
      result += text.front();
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
    text = text.drop_front(!text.empty());
  }
}

static void addWords(StringSet<> &words, StringRef text) {
  auto isPart = [](char c) { return isAlnum(c) || c == '_'; };
  while (!text.empty()) {
    text = text.drop_until(isPart);
    StringRef word = text.take_while(isPart);
    words.insert(word);
    text = text.drop_front(word.size());
  }
}

Lines::Lines(const ast::File &file, StringRef text) {
  StringSet<> layerNames;
  for (const ast::ItemPtr &item : file.items)
    if (auto *layer = dyn_cast<ast::LayerDecl>(item.get()))
      layerNames.insert(layer->name.text);
    else if (auto *output = dyn_cast<ast::OutputDecl>(item.get()))
      outputs.insert(output->name.text);
  std::vector<Line> last;
  for (const ast::ItemPtr &item : file.items) {
    if (auto *tensor = dyn_cast<ast::TensorDecl>(item.get())) {
      declared.try_emplace(tensor->name.text, declarations.size());
      declarations.push_back(tensor);
      continue;
    }
    StringRef written = textOf(item->range);
    if (isa<ast::LayerDecl>(item.get()))
      addWords(layers, written);
    if (isa<ast::TrainBlock, ast::ServeBlock, ast::LayoutDecl>(item.get())) {
      addWords(settings, written);
      hasPattern |= written.contains('"');
    }
    if (!isa<ast::AssignStmt, ast::RepeatStmt, ast::OutputDecl>(item.get()))
      continue;
    Line line{item.get(), {}};
    ReferenceCollector(line, layerNames).collect(*item);
    (isa<ast::OutputDecl>(item.get()) ? last : lines)
        .push_back(std::move(line));
  }
  llvm::move(last, std::back_inserter(lines));
  dropDims();
  for (const ast::TensorDecl *declaration : declarations)
    names.insert(declaration->name.text);
  for (const Line &line : lines)
    for (const TensorReference &reference : line.references)
      names.insert(reference.text);
  uses.resize(declarations.size());
  resolve();
  compare();
}

/// Expressions name dims, and tensors of other files, too: these are text.
void Lines::dropDims() {
  StringSet<> tensors;
  for (const ast::TensorDecl *declaration : declarations)
    tensors.insert(declaration->name.text);
  for (const Line &line : lines)
    for (const TensorReference &reference : line.references)
      if (reference.writes)
        tensors.insert(reference.text);
  for (Line &line : lines)
    llvm::erase_if(line.references, [&](const TensorReference &reference) {
      return !tensors.contains(reference.text);
    });
}

/// Finds what each line reads.
void Lines::resolve() {
  StringMap<TensorDefinition> current;
  for (auto [i, declaration] : enumerate(declarations))
    current[declaration->name.text] = {.declaration = i};
  for (auto [number, line] : enumerate(lines)) {
    for (TensorReference &reference : line.references) {
      auto it = current.find(reference.text);
      if (reference.reads && it != current.end())
        reference.definition = it->second;
      if (auto it = declared.find(reference.text); it != declared.end())
        ++uses[it->second];
    }
    for (auto [i, reference] : enumerate(line.references)) {
      // A repeat's names are its own unless they exist outside.
      bool isLocal = !line.assign() && !current.contains(reference.text);
      if (reference.writes && !isLocal)
        current[reference.text] = {.line = number, .reference = i};
    }
  }
}

/// Numbers the lines by their text without names of tensors: of a declared
/// tensor it has what is declared.
void Lines::compare() {
  StringMap<unsigned> known;
  unsigned next = 0;
  for (Line &line : lines) {
    if (!line.assign()) {
      line.alike = next++;
      continue;
    }
    std::string key;
    const char *at = line.item->range.Start.getPointer();
    for (const TensorReference &reference : line.references) {
      appendSpaced(key, StringRef(at, reference.text.data() - at));
      at = reference.text.end();
      key += '$';
      auto it = declared.find(reference.text);
      if (it == declared.end())
        continue;
      const ast::TensorDecl &tensor = *declarations[it->second];
      key += '0' + char(tensor.tensorKind);
      appendSpaced(key, textOf(tensor.type.range));
      appendSpaced(key, textOf(tensor.indices.range));
    }
    const char *end = line.item->range.End.getPointer();
    appendSpaced(key, StringRef(at, end - at));
    auto [it, isNew] = known.try_emplace(key, next);
    next += isNew;
    line.alike = it->second;
  }
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Those that save most, in this order.
static void keepBest(std::vector<LayerRun> &runs) {
  llvm::sort(runs, [](const LayerRun &a, const LayerRun &b) {
    return std::tuple(b.saved(), a.period, a.first) <
           std::tuple(a.saved(), b.period, b.first);
  });
  if (runs.size() > kMaxRuns)
    runs.resize(kMaxRuns);
}

std::vector<LayerRun> shardc::findRuns(const Lines &lines) {
  std::vector<LayerRun> runs;
  size_t size = lines.lines.size();
  for (size_t period = 1; period <= std::min(size / 2, kMaxPeriod); ++period) {
    size_t matched = 0;
    for (size_t i = 0; i + period <= size; ++i) {
      bool isMatch = i + period < size &&
                     lines.lines[i].alike == lines.lines[i + period].alike;
      matched = isMatch ? matched + 1 : matched;
      if (isMatch)
        continue;
      size_t first = i - matched;
      // The layers may begin at any statement.
      for (size_t shift = 0; shift < period && matched >= period + shift;
           ++shift)
        runs.push_back({first + shift, period, (matched - shift) / period + 1});
      // Something else may read what the last layer computes.
      if (matched >= 2 * period)
        runs.push_back({first, period, matched / period});
      if (runs.size() > 100 * kMaxRuns)
        keepBest(runs);
      matched = 0;
    }
  }
  keepBest(runs);
  return runs;
}

//===----------------------------------------------------------------------===//
// A run as a repeat
//===----------------------------------------------------------------------===//

namespace {
/// A name that a line of the body assigns: the line in the layer and the
/// reference in the line.
using BodyValue = std::pair<size_t, size_t>;

/// The value that a reference of the body reads.
struct BodyRead {
  enum class Kind { Outer, Owned, Same, Before };
  Kind kind = Kind::Outer;
  /// The value that this iteration (Same) or the one before it (Before)
  /// assigned.
  BodyValue value = {};
};

/// Makes the layers of a run iterations of one body.
class RunRoller {
public:
  RunRoller(const Lines &lines, const LayerRun &run) : lines(lines), run(run) {
    result.run = run;
  }

  std::optional<RolledRun> roll(bool shortensNames);

private:
  const Line &first(size_t offset) const {
    return lines.lines[run.line(0, offset)];
  }
  const TensorReference &reference(size_t layer, BodyValue at) const {
    return lines.lines[run.line(layer, at.first)].references[at.second];
  }
  bool forEachReference(llvm::function_ref<bool(BodyValue)> visit) const;
  std::optional<BodyValue> valueIn(size_t layer,
                                   const TensorDefinition &definition) const;
  bool isOutside(const TensorDefinition &definition) const;
  bool existsOutside(StringRef name);
  std::string freeName(StringRef name);
  bool hasLayer() const;

  bool own(BodyValue at);
  bool ownsOnlyItsOwn() const;
  bool classify(BodyValue at);
  StringRef indicesOf(const TensorDefinition &definition) const;
  bool carry(BodyValue value, const TensorReference &init);
  bool nameValues();
  bool nameAccumulated(BodyValue at, const std::string &name);
  bool runsAlike() const;
  bool renameBehind();
  void shorten();
  bool isMentioned() const;

  const Lines &lines;
  LayerRun run;
  RolledRun result;
  std::map<BodyValue, BodyRead> reads;
  /// Values that iterations carry over, each with its name before the first.
  std::map<BodyValue, TensorReference> carried;
  std::map<BodyValue, std::string> assigned;
  /// Names before the layers, and names that were made up.
  StringSet<> outside, taken;
  /// Declarations of each layer, by that of the first.
  std::map<size_t, std::vector<size_t>> owned;
};
} // namespace

bool RunRoller::forEachReference(
    llvm::function_ref<bool(BodyValue)> visit) const {
  for (size_t offset = 0; offset < run.period; ++offset)
    for (size_t i = 0; i < first(offset).references.size(); ++i)
      if (!visit({offset, i}))
        return false;
  return true;
}

/// The value of a layer that a definition is.
std::optional<BodyValue>
RunRoller::valueIn(size_t layer, const TensorDefinition &definition) const {
  size_t begin = run.line(layer, 0);
  if (!definition.isAssigned() || definition.line < begin ||
      definition.line >= begin + run.period)
    return std::nullopt;
  return BodyValue{definition.line - begin, definition.reference};
}

/// It holds before the layers.
bool RunRoller::isOutside(const TensorDefinition &definition) const {
  return definition.isDeclared() ||
         (definition.isAssigned() && definition.line < run.first);
}

bool RunRoller::existsOutside(StringRef name) {
  if (outside.empty())
    for (const Line &line : ArrayRef(lines.lines).take_front(run.first))
      for (const TensorReference &each : line.references)
        outside.insert(each.text);
  return lines.declared.contains(name) || outside.contains(name);
}

std::string RunRoller::freeName(StringRef name) {
  std::string result;
  unsigned number = 1;
  do
    result = (name + "_" + Twine(++number)).str();
  while (lines.names.contains(result) || !taken.insert(result).second);
  return result;
}

/// Layers have weights or states of their own.
bool RunRoller::hasLayer() const {
  auto calls = [](const Line &line) { return line.callsLayer; };
  return !owned.empty() ||
         any_of(ArrayRef(lines.lines).slice(run.first, run.period), calls);
}

/// A weight or a state that each layer has of its own: true if it is none.
bool RunRoller::own(BodyValue at) {
  auto it = lines.declared.find(reference(0, at).text);
  bool isSame = true;
  for (size_t layer = 1; layer < run.count; ++layer)
    isSame &= reference(layer, at).text == reference(0, at).text;
  if (isSame)
    return true;
  if (it == lines.declared.end()) {
    for (size_t layer = 1; layer < run.count; ++layer)
      if (lines.declared.contains(reference(layer, at).text))
        return false;
    return true;
  }
  std::vector<size_t> each;
  for (size_t layer = 0; layer < run.count; ++layer) {
    auto own = lines.declared.find(reference(layer, at).text);
    if (own == lines.declared.end() ||
        lines.declarations[own->second]->tensorKind ==
            ast::TensorDecl::TensorKind::Input)
      return false;
    each.push_back(own->second);
  }
  auto [known, isNew] = owned.try_emplace(each.front(), each);
  return isNew || known->second == each;
}

/// Nothing else reads or writes what a layer owns, and no two layers share it.
bool RunRoller::ownsOnlyItsOwn() const {
  DenseMap<size_t, size_t> layerOf, seen;
  for (const auto &[declaration, each] : owned)
    for (auto [layer, own] : enumerate(each))
      if (!layerOf.try_emplace(own, layer).second)
        return false;
  for (size_t layer = 0; layer < run.count; ++layer)
    for (size_t offset = 0; offset < run.period; ++offset)
      for (const TensorReference &each :
           lines.lines[run.line(layer, offset)].references) {
        auto it = lines.declared.find(each.text);
        if (it == lines.declared.end() || !layerOf.contains(it->second))
          continue;
        if (layerOf[it->second] != layer)
          return false;
        ++seen[it->second];
      }
  return all_of(layerOf, [&](const auto &pair) {
    return seen[pair.first] == lines.uses[pair.first];
  });
}

/// The list of indices that a definition has, if it is written.
StringRef RunRoller::indicesOf(const TensorDefinition &definition) const {
  if (definition.isDeclared())
    return textOf(lines.declarations[definition.declaration]->indices.range);
  const Line &line = lines.lines[definition.line];
  if (const ast::AssignStmt *assign = line.assign())
    for (const ast::Target &target : assign->targets)
      if (target.indices &&
          textOf(target.name.range).data() ==
              line.references[definition.reference].text.data())
        return textOf(target.indices->range);
  return "";
}

bool RunRoller::carry(BodyValue value, const TensorReference &init) {
  // A carried value has one sharding.
  StringRef before = indicesOf(init.definition);
  StringRef after =
      indicesOf({.line = run.line(0, value.first), .reference = value.second});
  if (before != after && (before + after).str().find('@') != std::string::npos)
    return false;
  auto [it, isNew] = carried.try_emplace(value, init);
  return isNew || (it->second.text == init.text &&
                   it->second.definition == init.definition);
}

/// Finds what a reference reads in every layer.
bool RunRoller::classify(BodyValue at) {
  const TensorReference &init = reference(0, at);
  if (!init.reads)
    return true;
  BodyRead &read = reads[at];
  if (init.definition.isDeclared() &&
      owned.contains(init.definition.declaration)) {
    read.kind = BodyRead::Kind::Owned;
    return true;
  }
  const TensorDefinition &next = reference(1, at).definition;
  if (std::optional<BodyValue> same = valueIn(0, init.definition)) {
    read = {BodyRead::Kind::Same, *same};
  } else if (!isOutside(init.definition)) {
    return false;
  } else if (std::optional<BodyValue> before = valueIn(0, next)) {
    read = {BodyRead::Kind::Before, *before};
    if (!carry(*before, init))
      return false;
  }
  for (size_t layer = 1; layer < run.count; ++layer) {
    const TensorDefinition &each = reference(layer, at).definition;
    bool isSame =
        read.kind == BodyRead::Kind::Outer
            ? each == init.definition
            : valueIn(read.kind == BodyRead::Kind::Same ? layer : layer - 1,
                      each) == read.value;
    if (!isSame)
      return false;
  }
  return true;
}

/// `+=` keeps the name of what it adds to.
bool RunRoller::nameAccumulated(BodyValue at, const std::string &name) {
  auto [it, isNew] = assigned.try_emplace(at, name);
  if (it->second != name)
    return false;
  auto read = reads.find(at);
  if (!isNew || read == reads.end())
    return true;
  switch (read->second.kind) {
  case BodyRead::Kind::Same:
    return nameAccumulated(read->second.value, name);
  case BodyRead::Kind::Before:
    return carried.at(read->second.value).text == name;
  case BodyRead::Kind::Owned:
    return reference(0, at).text == name;
  case BodyRead::Kind::Outer:
    return false;
  }
  llvm_unreachable("a read is of one of these kinds");
}

/// Names what the body assigns: what is carried over has its name before the
/// layers; all else keeps the first layer's name.
bool RunRoller::nameValues() {
  for (const auto &[value, init] : carried)
    if (!nameAccumulated(value, init.text.str()))
      return false;
  // From the end: `+=` gives its name to what it adds to.
  std::vector<BodyValue> values;
  forEachReference([&](BodyValue at) {
    if (reference(0, at).writes)
      values.push_back(at);
    return true;
  });
  for (BodyValue at : reverse(values)) {
    StringRef name = reference(0, at).text;
    if (assigned.contains(at))
      continue;
    // A name that exists outside would be carried over, as states are: another
    // one takes its place.
    bool isState = lines.declared.contains(name);
    bool isTaken = !isState && existsOutside(name);
    if (!nameAccumulated(at, isTaken ? freeName(name) : name.str()))
      return false;
  }
  return true;
}

/// Runs the body with its names: each reads what its layer reads.
bool RunRoller::runsAlike() const {
  // Nothing stands for what the iteration before it carries over.
  StringMap<std::optional<BodyValue>> current;
  for (const auto &[value, init] : carried)
    current[init.text] = std::nullopt;
  for (size_t offset = 0; offset < run.period; ++offset) {
    for (size_t i = 0; i < first(offset).references.size(); ++i) {
      auto it = reads.find({offset, i});
      if (it == reads.end())
        continue;
      const BodyRead &read = it->second;
      StringRef name = read.kind == BodyRead::Kind::Same
                           ? StringRef(assigned.at(read.value))
                           : reference(0, {offset, i}).text;
      auto now = current.find(name);
      bool isInBody = now != current.end();
      bool isRight = read.kind == BodyRead::Kind::Same
                         ? isInBody && now->second == read.value
                     : read.kind == BodyRead::Kind::Before
                         ? isInBody && !now->second
                         : !isInBody;
      if (!isRight)
        return false;
    }
    for (size_t i = 0; i < first(offset).references.size(); ++i)
      if (first(offset).references[i].writes)
        current[assigned.at({offset, i})] = BodyValue{offset, i};
  }
  return all_of(carried, [&](const auto &pair) {
    return current[pair.second.text] == pair.first;
  });
}

/// Lines behind the layers read what the last of them carries over.
bool RunRoller::renameBehind() {
  for (size_t number = run.end(); number < lines.lines.size(); ++number) {
    const Line &line = lines.lines[number];
    for (const TensorReference &each : line.references) {
      // Behind a repeat, a name that it carries is what it carried last.
      auto hides = [&](const auto &pair) {
        return pair.second.text == each.text;
      };
      if (each.reads && isOutside(each.definition) && any_of(carried, hides))
        return false;
      if (!each.reads || !each.definition.isAssigned() ||
          each.definition.line < run.first || each.definition.line >= run.end())
        continue;
      std::optional<BodyValue> value = valueIn(run.count - 1, each.definition);
      if (!value)
        return false;
      StringRef name = assigned.at(*value);
      bool isState = lines.declared.contains(each.text);
      if (!carried.contains(*value) && !(isState && name == each.text))
        return false;
      if (name == each.text)
        continue;
      if (isState || isa<ast::OutputDecl>(line.item))
        return false;
      result.renamed[each.text] = name.str();
    }
  }
  if (result.renamed.empty())
    return true;
  // The name must be free there.
  for (const Line &line : ArrayRef(lines.lines).drop_front(run.end()))
    for (const TensorReference &each : line.references)
      for (const auto &renamed : result.renamed)
        if (each.text == renamed.second)
          return false;
  return true;
}

/// Settings, or layers of the file, name something of the layers.
bool RunRoller::isMentioned() const {
  for (const auto &[declaration, each] : owned)
    for (size_t own : each) {
      StringRef name = lines.declarations[own]->name.text;
      if (lines.settings.contains(name) || lines.layers.contains(name))
        return true;
    }
  if (!owned.empty() && lines.hasPattern)
    return true;
  for (const auto &[value, init] : carried)
    if (lines.settings.contains(init.text))
      return true;
  for (size_t number = run.first; number < run.end(); ++number)
    for (const TensorReference &each : lines.lines[number].references)
      if (each.writes && lines.settings.contains(each.text))
        return true;
  return false;
}

/// A name without one of its numbers: `Wq_0`, `layer_0_Wq`, `layer.0`.
static std::optional<std::string> withoutNumber(StringRef a, StringRef b) {
  size_t same = 0;
  while (same < std::min(a.size(), b.size()) && a[same] == b[same])
    ++same;
  while (same > 0 && isDigit(a[same - 1]))
    --same;
  auto parts = [&](StringRef name) {
    StringRef front = name.take_front(same), rest = name.drop_front(same);
    return std::pair(front, rest.drop_while([](char c) { return isDigit(c); }));
  };
  auto [front, back] = parts(a);
  if (back != parts(b).second || front.size() + back.size() == a.size())
    return std::nullopt;
  if (front.ends_with("_"))
    front = front.drop_back();
  else if (front.empty())
    back.consume_front("_");
  std::string result = (front + back).str();
  if (result.empty() || isDigit(result.front()))
    return std::nullopt;
  return result;
}

/// Names of the body lose the number of their layer.
void RunRoller::shorten() {
  StringMap<std::string> found;
  StringMap<unsigned> wanted;
  forEachReference([&](BodyValue at) {
    StringRef name = reference(0, at).text;
    bool isKept = result.names[at.first][at.second] == name;
    auto it = lines.declared.find(name);
    bool isOwn = it == lines.declared.end() || owned.contains(it->second);
    if (!isKept || !isOwn || found.contains(name) ||
        lines.settings.contains(name) || lines.outputs.contains(name))
      return true;
    std::optional<std::string> shorter =
        withoutNumber(name, reference(1, at).text);
    if (shorter && !lines.names.contains(*shorter) &&
        !taken.contains(*shorter) && !lines.settings.contains(*shorter)) {
      found[name] = *shorter;
      ++wanted[*shorter];
    }
    return true;
  });
  for (const auto &pair : found)
    if (wanted[pair.second] == 1)
      result.shorter[pair.first()] = pair.second;
}

std::optional<RolledRun> RunRoller::roll(bool shortensNames) {
  for (size_t offset = 0; offset < run.period; ++offset)
    if (!first(offset).assign())
      return std::nullopt;
  if (!forEachReference([&](BodyValue at) { return own(at); }) || !hasLayer() ||
      !ownsOnlyItsOwn() ||
      !forEachReference([&](BodyValue at) { return classify(at); }) ||
      !nameValues() || !runsAlike() || !renameBehind() || isMentioned())
    return std::nullopt;
  for (size_t offset = 0; offset < run.period; ++offset) {
    std::vector<std::string> &names = result.names.emplace_back();
    for (auto [i, each] : enumerate(first(offset).references)) {
      auto read = reads.find({offset, i});
      if (each.writes)
        names.push_back(assigned.at({offset, i}));
      else if (read != reads.end() && read->second.kind == BodyRead::Kind::Same)
        names.push_back(assigned.at(read->second.value));
      else
        names.push_back(each.text.str());
    }
  }
  for (auto &[declaration, each] : owned)
    result.owned.push_back(each);
  if (shortensNames)
    shorten();
  return std::move(result);
}

std::optional<RolledRun>
shardc::rollRun(const Lines &lines, const LayerRun &run, bool shortensNames) {
  return RunRoller(lines, run).roll(shortensNames);
}
