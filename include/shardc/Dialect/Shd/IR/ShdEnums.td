//===- ShdEnums.td - Enumerations of the shd dialect ------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDENUMS_TD
#define SHARDC_DIALECT_SHD_IR_SHDENUMS_TD

include "mlir/IR/EnumAttr.td"
include "shardc/Dialect/Shd/IR/ShdBase.td"

class Shd_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::shardc::shd";
  let genSpecializedAttr = 0;
}

def Shd_TensorKind : Shd_Enum<"TensorKind", "what a declared tensor is for", [
  I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Weight", 1, "weight">,
  I32EnumAttrCase<"State", 2, "state">,
  // Buffers: written by the step before it reads them.
  I32EnumAttrCase<"Gradient", 3, "gradient">,
  I32EnumAttrCase<"Saved", 4, "saved">,
  // The optimizer's state.
  I32EnumAttrCase<"Moment", 5, "moment">,
  I32EnumAttrCase<"Master", 6, "master">]>;
def Shd_TensorKindAttr : EnumAttr<Shd_Dialect, Shd_TensorKind, "tensor_kind">;

def Shd_Function : Shd_Enum<"Function", "an elementwise function", [
  // Linear in all operands together.
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">,
  I32EnumAttrCase<"Neg", 2, "neg">,
  // The value itself, broadcast or with its dimensions in another order.
  I32EnumAttrCase<"Copy", 3, "copy">,
  // The value itself, which passes no gradient on.
  I32EnumAttrCase<"StopGradient", 7, "stop_gradient">,
  // Linear in each operand alone / in the first.
  I32EnumAttrCase<"Mul", 4, "mul">, I32EnumAttrCase<"Div", 5, "div">,
  I32EnumAttrCase<"Cast", 6, "cast">,
  // The remainder of integers has the sign of the divisor.
  I32EnumAttrCase<"Rem", 8, "rem">,
  I32EnumAttrCase<"Relu", 10, "relu">, I32EnumAttrCase<"Gelu", 11, "gelu">,
  I32EnumAttrCase<"Silu", 12, "silu">,
  I32EnumAttrCase<"Sigmoid", 13, "sigmoid">,
  I32EnumAttrCase<"Tanh", 14, "tanh">, I32EnumAttrCase<"Exp", 15, "exp">,
  I32EnumAttrCase<"Log", 16, "log">, I32EnumAttrCase<"Sqrt", 17, "sqrt">,
  I32EnumAttrCase<"Rsqrt", 18, "rsqrt">,
  I32EnumAttrCase<"Square", 19, "square">, I32EnumAttrCase<"Abs", 20, "abs">,
  I32EnumAttrCase<"Maximum", 21, "maximum">,
  I32EnumAttrCase<"Minimum", 22, "minimum">,
  I32EnumAttrCase<"Where", 23, "where">,
  I32EnumAttrCase<"Eq", 24, "eq">, I32EnumAttrCase<"Ne", 25, "ne">,
  I32EnumAttrCase<"Lt", 26, "lt">, I32EnumAttrCase<"Le", 27, "le">,
  I32EnumAttrCase<"Gt", 28, "gt">, I32EnumAttrCase<"Ge", 29, "ge">]>;
def Shd_FunctionAttr : EnumAttr<Shd_Dialect, Shd_Function, "function">;

def Shd_Reduction : Shd_Enum<"Reduction", "a reduction over indices", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
  I32EnumAttrCase<"ArgMax", 4, "argmax">]>;
def Shd_ReductionAttr : EnumAttr<Shd_Dialect, Shd_Reduction, "reduction">;

def Shd_Normalization : Shd_Enum<"Normalization", "a normalisation", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"LogSumExp", 1, "logsumexp">,
  I32EnumAttrCase<"RmsNorm", 2, "rmsnorm">,
  I32EnumAttrCase<"LayerNorm", 3, "layernorm">]>;
def Shd_NormalizationAttr
    : EnumAttr<Shd_Dialect, Shd_Normalization, "normalization">;

def Shd_Optimizer : Shd_Enum<"Optimizer", "an optimizer", [
  I32EnumAttrCase<"AdamW", 0, "adamw">, I32EnumAttrCase<"Sgd", 1, "sgd">]>;
def Shd_OptimizerAttr : EnumAttr<Shd_Dialect, Shd_Optimizer, "optimizer">;

def Shd_Remat : Shd_Enum<"Remat", "what the backward pass recomputes", [
  I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"None", 1, "none">,
  I32EnumAttrCase<"Full", 2, "full">, I32EnumAttrCase<"Every", 3, "every">]>;
def Shd_RematAttr : EnumAttr<Shd_Dialect, Shd_Remat, "remat">;

def Shd_Offload : Shd_Enum<"Offload", "what a training step keeps on the host", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Optimizer", 1, "optimizer">,
  I32EnumAttrCase<"Auto", 2, "auto">,
  I32EnumAttrCase<"Activations", 3, "activations">]>;
def Shd_OffloadAttr : EnumAttr<Shd_Dialect, Shd_Offload, "offload">;

def Shd_Phase : Shd_Enum<"Phase", "the part of a training step", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Recompute", 2, "recompute">,
  I32EnumAttrCase<"Update", 3, "update">]>;
def Shd_PhaseAttr : EnumAttr<Shd_Dialect, Shd_Phase, "phase">;

def Shd_StagePass : Shd_Enum<"StagePass",
    "the item of a pipeline's schedule that runs an operation", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Weights", 2, "weights">,
  I32EnumAttrCase<"Update", 3, "update">]>;

def Shd_Combination : Shd_Enum<"Combination",
    "what an all_reduce does with the contributions of devices", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
  I32EnumAttrCase<"Min", 2, "min">]>;
def Shd_CombinationAttr : EnumAttr<Shd_Dialect, Shd_Combination, "combination">;

def Shd_GroupPart : Shd_Enum<"GroupPart", "a part of a fusion group", [
  I32EnumAttrCase<"First", 0, "first">, I32EnumAttrCase<"Rest", 1, "rest">]>;

#endif // SHARDC_DIALECT_SHD_IR_SHDENUMS_TD
