//===- OuterChoice.cpp - Other values of an outer choice ------------------===//

#include "OuterChoice.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Questions/StepChoice.h"

using namespace mlir;
using namespace shardc;

/// Chunks of layers on a stage that are tried at most.
static constexpr int64_t kMostChunks = 16;

OuterChoice::OuterChoice(const ProgramText &text, Program &source,
                         llvm::StringRef name, TrialRunner &runner)
    : mesh(source.mesh),
      program(*source.module->getOps<shd::ProgramOp>().begin()),
      made(text.step), name(name.str()), runner(runner) {
  std::optional<shd::PipelineAttr> pipeline = program.getPipeline();
  bool trains = program.getTraining().has_value();
  if (name == "microbatches" && (trains || pipeline))
    kind = Kind::Microbatches;
  else if (name == "remat" && trains)
    kind = Kind::Remat;
  else if (name == "schedule" && pipeline)
    kind = Kind::Schedule;
  else if (pipeline && name == pipeline->getAxis() && !source.autoMesh)
    kind = Kind::Stages;
}

/// A point that makes one choice of a step. The others, which the compiler has
/// made for the plan, are open again.
Point OuterChoice::pointOf(StepForm form) const {
  if (made && made->microbatches && !form.microbatches)
    form.microbatches = 0;
  if (made && made->remat && !form.remat)
    form.remat = "auto";
  return {stepSetting(std::move(form))};
}

std::vector<OuterChoice::Candidate> OuterChoice::otherMicrobatches() const {
  std::vector<Candidate> list;
  // Of a program that has microbatches, the whole input is still there.
  for (int64_t number : microbatchNumbers(shd::batchExtent(program))) {
    StepForm form;
    form.microbatches = number;
    list.push_back({std::to_string(number), pointOf(std::move(form))});
  }
  return list;
}

std::vector<OuterChoice::Candidate>
OuterChoice::otherSchedules(const Report &report) const {
  std::vector<PipelineOrder> orders = {{PipelineOrder::GPipe}};
  if (program.getTraining())
    orders = {{PipelineOrder::GPipe},
              {PipelineOrder::OneFOneB},
              {PipelineOrder::OneFOneB2},
              {PipelineOrder::ZeroBubble},
              {PipelineOrder::ZeroBubble2}};
  for (int64_t chunks = 2; chunks <= kMostChunks; chunks *= 2)
    orders.push_back({PipelineOrder::Interleaved, chunks});
  std::vector<Candidate> list;
  for (PipelineOrder order : orders) {
    bool hasChunks = order.kind == PipelineOrder::Interleaved;
    int64_t least = hasChunks ? order.chunks : 1;
    if (program.getPipeline()->getLayers() <
        int64_t(report.stages->stages.size()) * least)
      continue;
    StepForm form;
    form.schedule = toString(order);
    list.push_back({toString(order), pointOf(std::move(form))});
  }
  return list;
}

/// Other sizes of the stages' axis, on as many chips: another axis takes the
/// difference.
std::vector<OuterChoice::Candidate> OuterChoice::otherStages() const {
  std::vector<Candidate> list;
  const MeshAxis &own = mesh.axes[*mesh.find(name)];
  int64_t layers = program.getPipeline()->getLayers();
  for (const MeshAxis &other : mesh.axes) {
    if (other.name == own.name)
      continue;
    int64_t both = own.size * other.size;
    for (int64_t size = 1; size <= std::min(both, layers); ++size) {
      if (both % size != 0 || size == own.size)
        continue;
      int64_t left = both / size;
      Point point = pointOf({});
      point.push_back({Setting::Kind::Axis, own.name, size, nullptr, {}});
      point.push_back({Setting::Kind::Axis, other.name, left, nullptr, {}});
      list.push_back({std::to_string(size) + ", " + other.name + "=" +
                          std::to_string(left),
                      std::move(point)});
    }
  }
  return list;
}

std::vector<OuterChoice::Candidate>
OuterChoice::candidates(const Report &report) const {
  switch (kind) {
  case Kind::None:
    return {};
  case Kind::Microbatches:
    return otherMicrobatches();
  case Kind::Schedule:
    return otherSchedules(report);
  case Kind::Stages:
    return otherStages();
  case Kind::Remat:
    break;
  }
  std::vector<Candidate> list;
  for (const char *remat : {"none", "full"}) {
    StepForm form;
    form.remat = remat;
    list.push_back({remat, pointOf(std::move(form))});
  }
  return list;
}

static int64_t microbatchesOf(const Report &report) {
  if (report.stages)
    return report.stages->microbatches;
  return report.training ? report.training->microbatches : 1;
}

std::string OuterChoice::chosenValue(const Report &report) const {
  switch (kind) {
  case Kind::None:
    return "";
  case Kind::Microbatches:
    return std::to_string(microbatchesOf(report));
  case Kind::Remat:
    return report.training->remat;
  case Kind::Schedule:
    return report.stages->order;
  case Kind::Stages:
    return std::to_string(mesh.axes[*mesh.find(name)].size);
  }
  llvm_unreachable("covered switch");
}

static ChoiceValue valueOf(std::string value, const Outcome &outcome) {
  ChoiceValue result;
  result.value = std::move(value);
  result.error = outcome.error;
  if (!outcome.report)
    return result;
  result.plan = figuresOf(*outcome.report);
  result.microbatches = microbatchesOf(*outcome.report);
  if (const auto &stages = outcome.report->stages) {
    result.bubble = stages->bubble;
    result.schedule = stages->order;
  }
  return result;
}

std::vector<ChoiceValue> OuterChoice::run(const Outcome &written) {
  std::string chosen = chosenValue(*written.report);
  std::vector<ChoiceValue> values = {valueOf(chosen, written)};
  values.front().chosen = true;
  std::vector<Candidate> others = candidates(*written.report);
  llvm::erase_if(others,
                 [&](const Candidate &each) { return each.value == chosen; });
  std::vector<Variant> variants;
  for (const Candidate &each : others)
    variants.push_back(Variant::at(each.point));
  for (auto [other, outcome] : llvm::zip_equal(others, runner.plan(variants)))
    values.push_back(valueOf(other.value, outcome));
  auto rank = [](const ChoiceValue &each) {
    int group = each.chosen ? 0 : each.fits() ? 1 : each.plan ? 2 : 3;
    int64_t value = !each.plan        ? 0
                    : each.plan->fits ? each.plan->value
                                      : each.plan->excess();
    return std::tuple(group, value);
  };
  llvm::stable_sort(values, [&](const ChoiceValue &a, const ChoiceValue &b) {
    return rank(a) < rank(b);
  });
  return values;
}
