//===- WritingTest.cpp - How a program is written does not matter ---------===//
//
// Other names, and axes, tensors and statements in another order, change
// neither the value of the plan nor its bound.
//
//===----------------------------------------------------------------------===//

#include "Planned.h"
#include "RandomProgram.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>
#include <regex>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr Objective kObjectives[] = {Objective::Upper, Objective::Scheduled};

/// Value and bound of the plan of a program; nothing if it has none.
std::optional<std::pair<double, double>> valueAndBound(llvm::StringRef text,
                                                       Objective objective) {
  Planned planned(text, OptMode::Optimize, objective);
  if (!planned)
    return std::nullopt;
  return std::pair(planned.report->plan.value,
                   planned.report->plan.bound.value_or(-1));
}

//===----------------------------------------------------------------------===//
// Random programs
//===----------------------------------------------------------------------===//

/// Plans random programs as they are and as `writing` has them.
void onWritings(Objective objective, const Writing &writing) {
  unsigned compared = 0;
  // The search by scheduled time takes much longer than by `upper`.
  const unsigned numPrograms = objective == Objective::Upper ? 40 : 8;
  for (unsigned seed = 1; seed <= numPrograms; ++seed) {
    RandomProgram program(seed);
    auto expected = valueAndBound(program.text(), objective);
    if (!expected)
      continue; // placements may contradict each other
    ++compared;
    EXPECT_EQ(valueAndBound(program.text(writing), objective), expected)
        << "seed " << seed << "\n"
        << program.text() << "\n"
        << program.text(writing);
  }
  EXPECT_GE(compared, numPrograms / 2);
}

TEST(Writing, NamesOfRandomPrograms) {
  Writing renamed;
  renamed.prefix = "zz_";
  for (Objective objective : kObjectives)
    onWritings(objective, renamed);
}

TEST(Writing, AxesOfRandomPrograms) {
  Writing swapped;
  swapped.mesh = {{1, 4}, {0, 4}};
  onWritings(Objective::Upper, swapped);
}

TEST(Writing, StatementsOfRandomPrograms) {
  Writing shuffled;
  for (Objective objective : kObjectives)
    for (shuffled.orderSeed = 1; shuffled.orderSeed <= 2; ++shuffled.orderSeed)
      onWritings(objective, shuffled);
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

std::string textOfModel(llvm::StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile(
      (SHARDC_MODELS_DIR "/" + name + ".shd").str(), /*IsText=*/true);
  EXPECT_TRUE(buffer);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

bool isAboutMachine(llvm::StringRef line) {
  return line.starts_with("hardware") || line.starts_with("mesh");
}

/// Dims and tensors, in the order in which they come.
std::vector<std::string> declaredNames(const std::string &text) {
  static const std::regex declaration(
      R"((?:\b(?:input|weight|state)\s+(\w+)\s*:)|(?:[ ,](\w+) = [^=])|(?:\n *(\w+)\[[^\n=]*=))");
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end;
       at != end; ++at)
    for (unsigned group = 1; group <= 3; ++group)
      if ((*at)[group].matched &&
          !llvm::is_contained(names, (*at)[group].str()))
        names.push_back((*at)[group].str());
  return names;
}

/// Names whose order is the reverse of that in which they come.
std::string renamed(const std::string &text) {
  std::map<std::string, std::string> names;
  for (const std::string &name : declaredNames(text))
    names[name] = "n" + std::to_string(999 - names.size());
  EXPECT_GT(names.size(), 5u);
  static const std::regex word(R"(\w+)");
  std::string result;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    std::string old = line.split("//").first.str();
    std::string now;
    size_t from = 0;
    for (std::sregex_iterator at(old.begin(), old.end(), word), end;
         !isAboutMachine(line) && at != end; ++at) {
      auto found = names.find(at->str());
      now += old.substr(from, at->position() - from);
      now += found == names.end() ? at->str() : found->second;
      from = at->position() + at->length();
    }
    result += now + old.substr(from) + "\n";
  }
  return result;
}

/// Each run of lines that declare tensors from the last to the first.
std::string withDeclarationsReversed(llvm::StringRef text) {
  std::string result, run;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    llvm::StringRef word = line.ltrim().split(' ').first;
    if (word == "input" || word == "weight" || word == "state") {
      run = line.str() + "\n" + run;
      continue;
    }
    result += run + line.str() + "\n";
    run.clear();
  }
  return result + run;
}

/// Lines of a body that declare nothing: `x[B, D] = ...`, `x[B, D] += ...`.
bool isStatement(const std::string &line) {
  static const std::regex statement(R"( *\w+\[[^\]]*\] *\+?= .*)");
  return std::regex_match(line, statement);
}

bool isMentioned(const std::string &name, const std::string &line) {
  return std::regex_search(line, std::regex("\\b" + name + "\\b"));
}

/// Neighbouring statements change places, where neither mentions the tensor
/// that the other makes.
std::string withStatementsShuffled(llvm::StringRef text, unsigned seed) {
  static const std::regex first(R"(\w+)");
  auto made = [](const std::string &line) {
    std::smatch name;
    std::regex_search(line, name, first);
    return name.str();
  };
  std::vector<std::string> lines;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    lines.push_back(line.str());
  std::mt19937 random(seed);
  for (size_t trial = 0; trial < 50 * lines.size(); ++trial) {
    std::string &a = lines[random() % (lines.size() - 1)], &b = (&a)[1];
    if (!isStatement(a) || !isStatement(b) || isMentioned(made(a), b) ||
        isMentioned(made(b), a))
      continue;
    std::swap(a, b);
  }
  return llvm::join(lines, "\n");
}

/// With another line for the mesh.
std::string withMesh(llvm::StringRef text, llvm::StringRef mesh) {
  std::string result;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    result += (line.starts_with("mesh") ? "mesh " + mesh : line).str() + "\n";
  return result;
}

struct Model {
  const char *name;
  /// Its mesh with the axes the other way round.
  const char *mesh;
};

class ModelWriting : public ::testing::TestWithParam<Model> {
protected:
  /// Of the model as it is.
  static std::optional<std::pair<double, double>> asIs(Objective objective) {
    static std::map<std::pair<std::string, Objective>,
                    std::optional<std::pair<double, double>>>
        planned;
    auto [entry, isNew] = planned.try_emplace({GetParam().name, objective});
    if (isNew)
      entry->second = valueAndBound(textOfModel(GetParam().name), objective);
    return entry->second;
  }

  void expectSame(const std::string &other, Objective objective) {
    auto expected = asIs(objective);
    ASSERT_TRUE(expected);
    EXPECT_EQ(valueAndBound(other, objective), expected)
        << objectiveName(objective) << "\n"
        << other;
  }
};

TEST_P(ModelWriting, Names) {
  for (Objective objective : kObjectives)
    expectSame(renamed(textOfModel(GetParam().name)), objective);
}

TEST_P(ModelWriting, Declarations) {
  for (Objective objective : kObjectives)
    expectSame(withDeclarationsReversed(textOfModel(GetParam().name)),
               objective);
}

TEST_P(ModelWriting, Statements) {
  std::string text = textOfModel(GetParam().name);
  std::string shuffled = withStatementsShuffled(text, 1);
  if (shuffled == text)
    GTEST_SKIP() << "no neighbouring statements are independent";
  for (Objective objective : kObjectives)
    expectSame(shuffled, objective);
}

// Labels are in the order of the axes. Where the search for `scheduled` ends
// with a gap, it has tried other plans by then: no plan is below the other's
// bound, and they are nearly as good.
TEST_P(ModelWriting, Axes) {
  std::string text = textOfModel(GetParam().name);
  std::string other = withMesh(text, GetParam().mesh);
  expectSame(other, Objective::Upper);
  auto expected = asIs(Objective::Scheduled);
  auto found = valueAndBound(other, Objective::Scheduled);
  ASSERT_TRUE(expected && found);
  EXPECT_LE(found->second, expected->first);
  EXPECT_LE(expected->second, found->first);
  EXPECT_NEAR(found->first, expected->first, 0.02 * expected->first);
}

constexpr Model kModels[] = {
    {"ffn", "[Y=4 on y, X=4 on x]"},
    {"attention", "[Y=4 on gpu, X=2 on gpu]"},
    {"llama3-8b", "[Y=8 on y, X=16 on x]"},
    {"llama3-70b", "[Y=8 on z, X=256 on (x, y)]"},
    {"llama3-70b-decode", "[Y=8 on y, X=4 on x]"},
    {"gpt3-175b", "[Y=8 on gpu, X=64 on (leaf, node)]"},
    {"gemma2-27b", "[Y=8 on z, X=64 on (x, y)]"}};

INSTANTIATE_TEST_SUITE_P(Models, ModelWriting, ::testing::ValuesIn(kModels),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
