//===- StepReference.cpp - A training step by JAX's derivative ------------===//

#include "StepReference.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

//===----------------------------------------------------------------------===//
// The optimizer's tensors
//===----------------------------------------------------------------------===//

StepReference::StepReference(PythonFile &file, shd::ProgramOp step)
    : file(file), training(*step.getTraining()) {
  findTrained(step);
}

void StepReference::findTrained(shd::ProgramOp step) {
  llvm::DenseSet<Operation *> updated;
  step->walk([&](shd::UpdateOp op) { updated.insert(op.getDeclaration()); });
  llvm::StringMap<Trained> byName;
  SmallVector<shd::DeclareOp> weights;
  for (auto declare : step.getBody().getOps<shd::DeclareOp>()) {
    if (!updated.contains(declare))
      continue;
    if (declare.getKind() == shd::TensorKind::Weight)
      weights.push_back(declare);
    if (declare.getKind() == shd::TensorKind::Master)
      byName[*declare.getOf()].stored = declare;
    if (declare.getKind() != shd::TensorKind::Moment)
      continue;
    if (declare.getOf())
      byName[*declare.getOf()].moments.push_back(declare);
    else
      steps = declare;
  }
  step->walk([&](shd::AdamWOp op) {
    shd::DeclareOp m = shd::declarationOf(op.getM()),
                   v = shd::declarationOf(op.getV());
    byName[*m.getOf()].moments = {m, v};
  });
  for (shd::DeclareOp weight : weights) {
    Trained trained = byName.lookup(weight.getSym());
    trained.weight = weight;
    if (!trained.stored)
      trained.stored = weight;
    all.push_back(std::move(trained));
  }
}

std::string StepReference::nameOf(shd::DeclareOp tensor) const {
  return quoted(file.parameters.lookup(tensor.getSym()));
}

std::string StepReference::table() const {
  std::string text =
      "# The weights that are trained: what an update reads and writes, a "
      "master copy or\n# the weight itself, and then its moments.\nTRAINED = "
      "{\n";
  for (const Trained &trained : all) {
    SmallVector<std::string> names = {nameOf(trained.stored)};
    for (shd::DeclareOp moment : trained.moments)
      names.push_back(nameOf(moment));
    text +=
        cat("    ", nameOf(trained.weight), ": ", pythonTuple(names), ",\n");
  }
  return cat(text, "}\n");
}

std::string StepReference::counter(StringRef values) const {
  return cat(values, "[", nameOf(steps), "]");
}

/// Second moments are means of squares, and the optimizer counts steps.
std::string StepReference::possibleState() const {
  if (!steps)
    return "";
  return cat(R"(    for _, _, second in TRAINED.values():
        values[second] = jnp.abs(values[second])
    )",
             counter("values"), " = jnp.full_like(", counter("values"),
             ", 3)\n");
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// The types through which a gradient goes: the one in which it accumulates,
/// the one in which it is sent, and that of the update.
std::string StepReference::conversions(const std::string &gradient) {
  std::string text = gradient, last;
  for (Type type : {training.getGradients(), training.getReduce(),
                    Type(Float32Type::get(training.getContext()))}) {
    if (!type || file.type(type) == last)
      continue;
    last = file.type(type);
    text += cat(".astype(", last, ")");
  }
  return text;
}

/// `adamw(scale * gradients[name], *before, step, lr=0.001)`
std::string StepReference::update() {
  auto option = [](StringRef name, FloatAttr value) {
    return cat(", ", name, "=", number(value.getValue()));
  };
  std::string gradient =
      training.getClip() ? "scale * gradients[name]" : "gradients[name]";
  std::string options = option("lr", training.getLr());
  if (training.getOptimizer() == shd::Optimizer::AdamW)
    return cat(file.helper("adamw"), "(", gradient, ", *before, step", options,
               option("beta1", training.getBeta1()),
               option("beta2", training.getBeta2()),
               option("eps", training.getEps()),
               option("decay", training.getDecay()), ")");
  return cat(file.helper("sgd"), "(", gradient, ", *before", options,
             option("beta", training.getBeta1()),
             option("decay", training.getDecay()), ")");
}

std::string StepReference::function() {
  std::string loss = quoted(training.getLoss());
  std::string text =
      cat(R"(def reference(*values):
    """A step of the program without shardings: JAX's derivative, and the optimizer."""
    old, new = dict(zip(TENSORS, values)), {}
    weights = {name: old[name] for name in TRAINED}
    others = {name: value for name, value in old.items() if name not in STATES}

    def loss_of(weights):
        outputs, _ = forward_program(**weights, **others)
        return outputs[)",
          loss, R"(], outputs

    (_, outputs), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
    gradients = {name: )",
          conversions("value"), " for name, value in gradients.items()}\n");
  if (FloatAttr clip = training.getClip())
    text += cat("    scale = ", file.helper("norm_scale"),
                "(gradients.values(), ", number(clip.getValue()), ")\n");
  if (steps)
    text += cat("    step = ", counter("new"), " = ", counter("old"), " + 1\n");
  return cat(text, R"(    for name, stored in TRAINED.items():
        before = [old[each] for each in stored]
        made = )",
             update(), R"(
        for each, value in (*zip(stored, made), (name, made[0])):
            new[each] = value.astype(old[each].dtype)
    return outputs, new


)");
}
