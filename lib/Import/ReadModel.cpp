//===- ReadModel.cpp - A model from the keys of its config ----------------===//
//
// A table of families, each by its keys' defaults and its building blocks.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace llvm;

namespace shardc::import {

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

namespace {

enum class Blocks { Llama, Gpt2, NeoX, Falcon, Bloom, Mpt, T5, Bert, Vit };
enum class Windows { None, All, UseFlag, Alternating, Pattern };
enum class Bias { Key, Never, Qkv, QkvKey, All };

struct Family {
  StringLiteral name;
  Blocks blocks;
  Windows windows;
  Bias bias;
  QkNorm qkNorm;
  NormKind norm;
  NormPlace place;
  bool experts;
  StringLiteral defaults;
};

} // namespace

/// Defaults as in the `configuration_*.py` of the families.
static constexpr Family families[] = {
    {"llama", Blocks::Llama, Windows::None, Bias::Key, QkNorm::None,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6})"},
    {"mistral", Blocks::Llama, Windows::All, Bias::Never, QkNorm::None,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096,
         "num_key_value_heads": 8})"},
    {"qwen2", Blocks::Llama, Windows::UseFlag, Bias::Qkv, QkNorm::None,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096,
         "max_window_layers": 28, "num_key_value_heads": 32})"},
    {"qwen3", Blocks::Llama, Windows::UseFlag, Bias::Key, QkNorm::Head,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096,
         "max_window_layers": 28, "num_key_value_heads": 32,
         "head_dim": 128})"},
    {"phi3", Blocks::Llama, Windows::All, Bias::Never, QkNorm::None,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-5})"},
    {"granite", Blocks::Llama, Windows::None, Bias::Key, QkNorm::None,
     NormKind::Rms, NormPlace::Before, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "embedding_multiplier": 1,
         "residual_multiplier": 1, "attention_multiplier": 1,
         "logits_scaling": 1})"},
    {"olmo2", Blocks::Llama, Windows::None, Bias::Key, QkNorm::AllHeads,
     NormKind::Rms, NormPlace::After, false,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-5})"},
    {"gemma", Blocks::Llama, Windows::None, Bias::Key, QkNorm::None,
     NormKind::RmsPlusOne, NormPlace::Before, false,
     R"({"rms_norm_eps": 1e-6, "head_dim": 256, "tie_word_embeddings": true})"},
    {"gemma2", Blocks::Llama, Windows::Alternating, Bias::Key, QkNorm::None,
     NormKind::RmsPlusOne, NormPlace::Both, false,
     R"({"rms_norm_eps": 1e-6, "head_dim": 256, "tie_word_embeddings": true,
         "sliding_window": 4096, "query_pre_attn_scalar": 256,
         "num_key_value_heads": 4, "attn_logit_softcapping": 50,
         "final_logit_softcapping": 30})"},
    {"gemma3_text", Blocks::Llama, Windows::Pattern, Bias::Key, QkNorm::Head,
     NormKind::RmsPlusOne, NormPlace::Both, false,
     R"({"rms_norm_eps": 1e-6, "head_dim": 256, "tie_word_embeddings": true,
         "sliding_window": 4096, "query_pre_attn_scalar": 256,
         "num_attention_heads": 8, "num_key_value_heads": 4,
         "vocab_size": 262208, "sliding_window_pattern": 6,
         "rope_theta": 1000000, "rope_local_base_freq": 10000})"},
    {"starcoder2", Blocks::Llama, Windows::All, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5,
         "use_bias": true, "tie_word_embeddings": true,
         "num_key_value_heads": 2, "norm_type": "layer_norm",
         "mlp_type": "default"})"},
    {"mixtral", Blocks::Llama, Windows::All, Bias::Never, QkNorm::None,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-5, "num_key_value_heads": 8,
         "rope_theta": 1000000, "num_local_experts": 8,
         "num_experts_per_tok": 2, "norm_topk_prob": true})"},
    {"qwen2_moe", Blocks::Llama, Windows::UseFlag, Bias::QkvKey, QkNorm::None,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096,
         "max_window_layers": 28, "num_key_value_heads": 16, "qkv_bias": true,
         "num_experts": 60, "num_experts_per_tok": 4,
         "decoder_sparse_step": 1, "moe_intermediate_size": 1408,
         "shared_expert_intermediate_size": 5632})"},
    {"qwen3_moe", Blocks::Llama, Windows::UseFlag, Bias::Key, QkNorm::Head,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096,
         "max_window_layers": 0, "num_key_value_heads": 4,
         "num_experts": 128, "num_experts_per_tok": 8, "head_dim": 128,
         "decoder_sparse_step": 1, "moe_intermediate_size": 768})"},
    {"deepseek_v2", Blocks::Llama, Windows::None, Bias::Never, QkNorm::None,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "q_lora_rank": 1536,
         "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "v_head_dim": 128, "first_k_dense_replace": 0, "moe_layer_freq": 1,
         "scoring_func": "softmax", "routed_scaling_factor": 1})"},
    {"deepseek_v3", Blocks::Llama, Windows::None, Bias::Never, QkNorm::None,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-6, "q_lora_rank": 1536,
         "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "v_head_dim": 128, "first_k_dense_replace": 3, "moe_layer_freq": 1,
         "n_routed_experts": 256, "n_shared_experts": 1,
         "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
         "n_group": 8, "topk_group": 4, "norm_topk_prob": true,
         "scoring_func": "sigmoid", "routed_scaling_factor": 2.5,
         "topk_method": "noaux_tc"})"},
    {"gpt_oss", Blocks::Llama, Windows::Alternating, Bias::Key, QkNorm::None,
     NormKind::Rms, NormPlace::Before, true,
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-5, "head_dim": 64,
         "num_attention_heads": 64, "num_key_value_heads": 8,
         "attention_bias": true, "sliding_window": 128, "rope_theta": 150000,
         "num_local_experts": 128, "num_experts_per_tok": 4,
         "swiglu_limit": 7})"},
    {"gpt2", Blocks::Gpt2, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
         "tie_word_embeddings": true, "n_positions": 1024,
         "vocab_size": 50257})"},
    {"gpt_bigcode", Blocks::Gpt2, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"activation_function": "gelu_pytorch_tanh",
         "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
         "n_positions": 1024, "multi_query": true})"},
    {"gpt_neox", Blocks::NeoX, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-5, "rotary_pct": 0.25,
         "rotary_emb_base": 10000, "use_parallel_residual": true,
         "attention_bias": true})"},
    {"falcon", Blocks::Falcon, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"activation": "gelu", "layer_norm_epsilon": 1e-5, "bias": false,
         "multi_query": true, "parallel_attn": true, "alibi": false,
         "tie_word_embeddings": true, "new_decoder_architecture": false})"},
    {"bloom", Blocks::Bloom, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
         "apply_residual_connection_post_layernorm": false})"},
    {"mpt", Blocks::Mpt, Windows::None, Bias::Key, QkNorm::None,
     NormKind::LayerScale, NormPlace::Before, false,
     R"({"layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
         "d_model": 2048, "n_heads": 16, "n_layers": 24,
         "expansion_ratio": 4, "vocab_size": 50368, "no_bias": true,
         "norm_type": "low_precision_layernorm"})"},
    {"t5", Blocks::T5, Windows::None, Bias::Never, QkNorm::None, NormKind::Rms,
     NormPlace::Before, false,
     R"({"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
         "num_heads": 8, "vocab_size": 32128, "layer_norm_epsilon": 1e-6,
         "relative_attention_num_buckets": 32, "feed_forward_proj": "relu",
         "relative_attention_max_distance": 128,
         "tie_word_embeddings": true})"},
    {"bert", Blocks::Bert, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::AfterSum, false,
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12,
         "max_position_embeddings": 512, "type_vocab_size": 2,
         "position_embedding_type": "absolute", "is_decoder": false})"},
    {"vit", Blocks::Vit, Windows::None, Bias::All, QkNorm::None,
     NormKind::Layer, NormPlace::Before, false,
     R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
         "patch_size": 16, "num_channels": 3, "qkv_bias": true,
         "num_labels": 2})"},
};

static StringRef canonical(StringRef name) {
  return name == "gemma3" ? "gemma3_text" : name;
}

static const Family *findFamily(StringRef name) {
  const Family *found = find_if(
      families, [&](const Family &f) { return f.name == canonical(name); });
  return found == std::end(families) ? nullptr : found;
}

std::optional<json::Object> familyDefaults(StringRef name) {
  const Family *family = findFamily(name);
  if (!family)
    return std::nullopt;
  json::Value value = cantFail(json::parse(family->defaults));
  return std::move(*value.getAsObject());
}

std::vector<StringRef> familyNames() {
  std::vector<StringRef> names;
  for (const Family &family : families)
    names.push_back(family.name);
  return names;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static std::string readActivation(Config &config, StringRef key,
                                  StringRef none = "silu") {
  std::string name = config.string(key, none);
  if (name == "silu" || name == "swish")
    return "silu";
  if (StringRef(name).starts_with("gelu"))
    return "gelu";
  if (name == "relu")
    return name;
  config.error(key, "activation '" + name + "' is not one of silu, gelu, relu");
  return "silu";
}

/// Elements that share a scale in the formats of OCP's Microscaling.
static constexpr int64_t kMxBlock = 32;

/// Element types: a fp8 checkpoint keeps its matrices in fp8 where nothing
/// trains them.
static void readTypes(Config &config, Model &model, Task task) {
  StringRef key = config.find("torch_dtype") ? "torch_dtype" : "dtype";
  std::string name = config.string(key, "bfloat16");
  StringRef type = name == "bfloat16"  ? "bf16"
                   : name == "float16" ? "f16"
                   : name == "float32" ? "f32"
                                       : "";
  if (type.empty())
    config.error(key, "'" + key +
                          "' expects bfloat16, float16 or float32, found '" +
                          name + "'");
  model.type = type.empty() ? "bf16" : type.str();
  model.matrixType = model.expertType = model.type;
  const json::Object *fields = config.fields("quantization_config");
  if (!fields)
    return;
  StringRef method = fields->getString("quant_method").value_or("");
  if (method.empty()) {
    config.error("quantization_config",
                 "'quant_method' of 'quantization_config' expects fp8 or "
                 "mxfp4");
    return;
  }
  if (method != "fp8" && method != "mxfp4") {
    config.error("quantization_config",
                 "weights quantised by '" + method +
                     "' cannot be read; only fp8, mxfp4");
    return;
  }
  if (task == Task::Train) {
    model.notes.push_back(
        ("The checkpoint's " + method + " weights are trained in " + model.type)
            .str() +
        ".");
    return;
  }
  if (method == "mxfp4") {
    model.expertType = "f4e2m1";
    model.expertBlock = kMxBlock;
    model.notes.push_back("Experts' matrices in mxfp4: 4 bits a weight, and 8 "
                          "for the scale of a block of 32.");
    return;
  }
  bool e5 = fields->getString("fmt").value_or("e4m3") == "e5m2";
  model.matrixType = model.expertType = e5 ? "f8e5m2" : "f8e4m3";
  model.notes.push_back(
      "Matrices of layers in fp8; the scales of their blocks are left out.");
}

namespace {

/// How positions rotate.
struct Rope {
  /// The bases of layers that see all positions, and of those with a window.
  double theta = 10000, windowTheta = 10000;
  /// The part of each head that rotates, and the key that says so.
  double part = 1;
  StringRef partKey;
};

} // namespace

/// A fraction of 1.
static double readPart(Config &config, StringRef key, double none) {
  double part = config.real(key, none);
  if (part > 1)
    config.error(key, "'" + key + "' expects a number up to 1");
  return part;
}

/// `rope` with the values of `rope_parameters`, where transformers 5 has them:
/// there they go before the keys of earlier versions. Theta may be one of all
/// layers, or one of each type of attention.
static Rope readRopeParameters(Config &config, Rope rope) {
  StringRef key = "rope_parameters", part = "partial_rotary_factor";
  config.inside(key, [&](Config &fields) {
    if (fields.find("rope_theta"))
      rope.theta = rope.windowTheta = fields.real("rope_theta", rope.theta);
    if (fields.find(part)) {
      rope.part = readPart(fields, part, 1);
      rope.partKey = key;
    }
    for (auto [type, theta] :
         {std::pair("full_attention", &rope.theta),
          std::pair("sliding_attention", &rope.windowTheta)})
      fields.inside(type, [&](Config &own) {
        *theta = own.real("rope_theta", *theta);
        if (own.find(part))
          own.error(part,
                    "'" + part + "' of one type of attention cannot be read");
      });
  });
  return rope;
}

/// `layer_types`, where a config lists them, else the family's rule.
static void readWindows(Config &config, const Family &family,
                        double windowTheta, Model &model) {
  std::optional<int64_t> window;
  bool flag = family.windows != Windows::UseFlag ||
              config.boolean("use_sliding_window");
  if (family.windows != Windows::None)
    window = config.optionalInteger("sliding_window");
  int64_t first =
      family.windows == Windows::UseFlag
          ? config.optionalInteger("max_window_layers", 0).value_or(0)
          : 0;
  if (!flag)
    window.reset();
  int64_t period = family.windows == Windows::Alternating ? 2 : 1;
  if (family.windows == Windows::Pattern)
    period = config
                 .optionalInteger(config.find("_sliding_window_pattern")
                                      ? "_sliding_window_pattern"
                                      : "sliding_window_pattern")
                 .value_or(6);
  const json::Value *listed = config.find("layer_types");
  const json::Array *types = listed ? listed->getAsArray() : nullptr;
  if (listed && (!types || types->size() != model.layers.size())) {
    config.error("layer_types", "'layer_types' expects a list of " +
                                    Twine(model.layers.size()) + " types");
    return;
  }
  for (auto [i, layer] : enumerate(model.layers)) {
    bool slides = period > 1 ? (i + 1) % period != 0 : int64_t(i) >= first;
    if (types) {
      StringRef type = (*types)[i].getAsString().value_or("");
      if (type != "sliding_attention" && type != "full_attention") {
        config.error("layer_types", "attention of type '" + type +
                                        "' cannot be read; only "
                                        "sliding_attention, full_attention");
        return;
      }
      slides = type == "sliding_attention";
    }
    if (!slides || !window)
      continue;
    layer.window = window;
    layer.theta = windowTheta;
  }
}

static void readLatent(Config &config, Model &model) {
  Latent latent;
  latent.queryRank = config.optionalInteger("q_lora_rank");
  latent.rank = config.integer("kv_lora_rank");
  latent.plain = config.integer("qk_nope_head_dim");
  latent.rotary = config.integer("qk_rope_head_dim", 2);
  if (latent.rotary % 2 != 0)
    config.error("qk_rope_head_dim", "rotary positions expect an even number "
                                     "of elements of each head, found " +
                                         Twine(latent.rotary));
  latent.value = config.integer("v_head_dim");
  config.find("num_key_value_heads"); // each query head has its own
  config.find("qk_head_dim");
  config.find("head_dim");
  if (config.boolean("attention_bias"))
    config.error("attention_bias", "latent attention with biases cannot be "
                                   "read");
  model.latent = latent;
}

/// Which layers have experts.
static void placeExperts(Config &config, Model &model) {
  int64_t first =
      config.optionalInteger("first_k_dense_replace", 0).value_or(0);
  int64_t step = config.optionalInteger("moe_layer_freq").value_or(1);
  bool qwen = StringRef(model.family).starts_with("qwen");
  if (qwen)
    step = config.optionalInteger("decoder_sparse_step").value_or(1);
  for (auto [i, layer] : enumerate(model.layers))
    layer.hasExperts = int64_t(i) >= first && (qwen ? i + 1 : i) % step == 0;
  if (qwen)
    for (int64_t i : config.integers("mlp_only_layers", 0,
                                     int64_t(model.layers.size()) - 1))
      model.layers[i].hasExperts = false;
}

static void readExperts(Config &config, Model &model) {
  Experts experts;
  StringRef family = model.family;
  bool local = family == "mixtral" || family == "gpt_oss";
  StringRef countKey = local                        ? "num_local_experts"
                       : family.starts_with("qwen") ? "num_experts"
                                                    : "n_routed_experts";
  experts.count = config.integer(countKey);
  experts.picks = config.integer("num_experts_per_tok");
  if (experts.picks > experts.count)
    config.error("num_experts_per_tok", "'num_experts_per_tok' exceeds the " +
                                            Twine(experts.count) + " experts");
  experts.hidden =
      local ? model.hidden : config.integer("moe_intermediate_size");
  for (int64_t summed : {model.width, experts.hidden})
    if (model.expertBlock && summed % model.expertBlock)
      config.error("quantization_config",
                   "blocks of " + Twine(model.expertBlock) +
                       " weights do not divide a width of " + Twine(summed));
  experts.normalise = config.boolean("norm_topk_prob");
  if (family == "gpt_oss") {
    experts.softmaxOfPicked = experts.biases = true;
    experts.clamp = config.real("swiglu_limit", 7);
  }
  if (family == "qwen2_moe") {
    experts.shared = config.integer("shared_expert_intermediate_size");
    experts.sharedGate = true;
  }
  if (family.starts_with("deepseek")) {
    experts.shared = SaturatingMultiply<uint64_t>(
        config.optionalInteger("n_shared_experts", 0).value_or(0),
        experts.hidden);
    if (experts.shared > (int64_t(1) << 40) || experts.shared < 0)
      config.error("n_shared_experts",
                   "'n_shared_experts' makes a hidden width "
                   "above 2^40");
    std::string scoring = config.string("scoring_func", "softmax");
    experts.sigmoid = scoring == "sigmoid";
    if (!experts.sigmoid && scoring != "softmax")
      config.error("scoring_func", "scores by '" + scoring +
                                       "' cannot be read; only softmax, "
                                       "sigmoid");
    std::string method = config.string("topk_method", "greedy");
    experts.choosingBias = method == "noaux_tc";
    if (!experts.choosingBias && method != "greedy" &&
        method != "group_limited_greedy")
      config.error("topk_method", "'topk_method' expects greedy, "
                                  "group_limited_greedy or noaux_tc, found '" +
                                      method + "'");
    experts.scale = config.real("routed_scaling_factor", 1);
    if (family == "deepseek_v2" && experts.normalise)
      experts.scale = 1;
    if (method != "greedy") {
      experts.groups = config.optionalInteger("n_group").value_or(1);
      experts.groupLimit = config.optionalInteger("topk_group").value_or(1);
      if (experts.count % experts.groups)
        config.error("n_group", "'n_group' does not divide the " +
                                    Twine(experts.count) + " experts");
      if (experts.groupLimit > experts.groups)
        config.error("topk_group", "'topk_group' exceeds 'n_group'");
    } else {
      config.find("n_group"), config.find("topk_group");
    }
  }
  model.experts = experts;
  placeExperts(config, model);
}

static void readHeads(Config &config, Model &model, StringRef headsKey,
                      StringRef widthKey, StringRef keyHeadsKey) {
  model.heads = config.integer(headsKey);
  model.keyHeads =
      keyHeadsKey.empty()
          ? model.heads
          : config.optionalInteger(keyHeadsKey).value_or(model.heads);
  std::optional<int64_t> size = config.optionalInteger("head_dim");
  if (config.hasErrors())
    model.heads = model.keyHeads = 1;
  if (!size && !model.latent && model.width % model.heads)
    config.error(headsKey, "'" + headsKey + "' does not divide '" + widthKey +
                               "', and there is no 'head_dim'");
  model.headSize =
      size.value_or(std::max<int64_t>(model.width / model.heads, 1));
  if (!model.latent && model.heads % model.keyHeads)
    config.error(keyHeadsKey,
                 "'" + keyHeadsKey + "' does not divide '" + headsKey + "'");
}

/// All layers rotate as those that see all positions do.
static void setRotary(Config &config, Model &model, const Rope &rope) {
  for (LayerKind &layer : model.layers)
    layer.theta = rope.theta;
  if (config.hasErrors() || model.latent)
    return;
  model.rotary = int64_t(double(model.headSize) * rope.part);
  if (model.rotary >= 2 && model.rotary % 2 == 0)
    return;
  StringRef cause = config.find(rope.partKey) ? rope.partKey
                    : config.find("head_dim") ? "head_dim"
                                              : "hidden_size";
  config.error(cause, "rotary positions expect an even number of elements of "
                      "each head, found " +
                          Twine(model.rotary) + " of " + Twine(model.headSize));
}

static std::vector<LayerKind> readLayers(Config &config, StringRef key) {
  return std::vector<LayerKind>(config.integer(key, 1, /*most=*/100'000));
}

/// Llama and all that name their keys as it does.
static void readLlama(Config &config, const Family &family, Model &model) {
  model.width = config.integer("hidden_size");
  model.layers = readLayers(config, "num_hidden_layers");
  model.vocabulary = config.integer("vocab_size");
  model.hidden = config.integer("intermediate_size");
  if (StringRef(model.family).starts_with("deepseek"))
    readLatent(config, model);
  readHeads(config, model, "num_attention_heads", "hidden_size",
            model.latent ? "" : "num_key_value_heads");
  Rope rope;
  rope.partKey = "partial_rotary_factor";
  rope.part = readPart(config, rope.partKey, 1);
  rope.theta = config.real("rope_theta", 10000);
  rope.windowTheta = family.windows == Windows::Pattern
                         ? config.real("rope_local_base_freq", 10000)
                         : rope.theta;
  rope = readRopeParameters(config, rope);
  setRotary(config, model, rope);
  readWindows(config, family, rope.windowTheta, model);
  bool biased = family.bias == Bias::Key && config.boolean("attention_bias");
  bool all = family.bias == Bias::All && config.boolean("use_bias");
  model.qkvBias = biased || all || family.bias == Bias::Qkv ||
                  (family.bias == Bias::QkvKey && config.boolean("qkv_bias"));
  model.outBias = biased || all;
  model.mlpBias =
      all || (family.bias == Bias::Key && config.boolean("mlp_bias"));
  if (family.norm == NormKind::Layer) {
    model.eps = config.real("norm_epsilon", 1e-5);
    model.gated = false;
    for (auto [key, only] : {std::pair("norm_type", "layer_norm"),
                             std::pair("mlp_type", "default")})
      if (config.string(key, only) != only)
        config.error(key, Twine("'") + key + "' expects '" + only + "'");
  } else {
    model.eps = config.real("rms_norm_eps", 1e-6);
  }
  if (StringRef(model.family).starts_with("gemma")) {
    // The key of later versions wins; both mean the tanh form.
    config.find("hidden_act");
    model.activation =
        readActivation(config, "hidden_activation", "gelu_pytorch_tanh");
    model.scaleEmbeddingBySqrt = true;
  } else {
    model.activation = readActivation(config, "hidden_act");
  }
  if (config.find("query_pre_attn_scalar"))
    model.scoreScale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 1));
  if (config.find("attn_logit_softcapping"))
    model.scoreCap = config.real("attn_logit_softcapping", 1);
  if (config.find("final_logit_softcapping"))
    model.logitCap = config.real("final_logit_softcapping", 1);
  if (model.family == "granite") {
    model.embeddingScale = config.real("embedding_multiplier", 1);
    model.residualScale = config.real("residual_multiplier", 1);
    model.scoreScale = config.real("attention_multiplier", 1);
    model.logitDivisor = config.real("logits_scaling", 1);
  }
  model.sinks = model.family == "gpt_oss";
  if (family.experts)
    readExperts(config, model);
}

static void readGpt2(Config &config, Model &model) {
  model.width = config.integer("n_embd");
  model.layers = readLayers(config, "n_layer");
  model.vocabulary = config.integer("vocab_size");
  model.hidden = config.optionalInteger("n_inner").value_or(4 * model.width);
  readHeads(config, model, "n_head", "n_embd", "");
  if (config.boolean("multi_query"))
    model.keyHeads = 1;
  model.positionsKey = "n_positions";
  model.positions = config.integer(model.positionsKey);
  model.eps = config.real("layer_norm_epsilon", 1e-5);
  model.qkvBias = model.outBias = model.mlpBias = true;
  model.gated = false;
  model.activation = readActivation(config, "activation_function", "gelu_new");
  if (config.boolean("add_cross_attention"))
    config.error("add_cross_attention",
                 "attention to another model's output cannot be written");
  if (!config.boolean("scale_attn_weights", true))
    model.scoreScale = 1;
  if (config.boolean("scale_attn_by_inverse_layer_idx"))
    config.error("scale_attn_by_inverse_layer_idx",
                 "scores scaled by the layer's number cannot be read");
}

static void readNeoX(Config &config, Model &model) {
  model.width = config.integer("hidden_size");
  model.layers = readLayers(config, "num_hidden_layers");
  model.vocabulary = config.integer("vocab_size");
  model.hidden = config.integer("intermediate_size");
  readHeads(config, model, "num_attention_heads", "hidden_size", "");
  Rope rope;
  rope.partKey = "rotary_pct";
  rope.part = readPart(config, rope.partKey, 0.25);
  rope.theta = config.real("rope_theta", config.real("rotary_emb_base", 10000));
  setRotary(config, model, readRopeParameters(config, rope));
  model.eps = config.real("layer_norm_eps", 1e-5);
  model.qkvBias = model.outBias = config.boolean("attention_bias", true);
  model.mlpBias = true;
  model.gated = false;
  model.activation = readActivation(config, "hidden_act", "gelu");
  if (config.boolean("use_parallel_residual"))
    model.residual = Residual::Parallel;
}

/// The exponent of the last head's slope where a config does not say it.
static constexpr double kAlibiMost = 8;

static void readFalcon(Config &config, Model &model) {
  model.width = config.integer("hidden_size");
  StringRef layersKey =
      config.find("n_layer") ? "n_layer" : "num_hidden_layers";
  StringRef headsKey = config.find("n_head") ? "n_head" : "num_attention_heads";
  model.layers = readLayers(config, layersKey);
  model.vocabulary = config.integer("vocab_size");
  model.hidden =
      config.optionalInteger("ffn_hidden_size").value_or(4 * model.width);
  bool newer = config.boolean("new_decoder_architecture");
  bool multiQuery = config.boolean("multi_query");
  StringRef keysKey = config.find("n_head_kv") ? "n_head_kv" : "num_kv_heads";
  readHeads(config, model, headsKey, "hidden_size", newer ? keysKey : "");
  if (!newer && multiQuery)
    model.keyHeads = 1;
  if (config.boolean("alibi")) {
    // The bias is scaled as the scores are.
    model.alibiMost = kAlibiMost;
    model.alibiScale = 1 / std::sqrt(double(model.headSize));
  } else {
    Rope rope;
    rope.partKey = headsKey;
    rope.theta = config.real("rope_theta", 10000);
    setRotary(config, model, readRopeParameters(config, rope));
  }
  model.eps = config.real("layer_norm_epsilon", 1e-5);
  model.qkvBias = model.outBias = model.mlpBias = config.boolean("bias");
  model.gated = false;
  model.activation = readActivation(config, "activation", "gelu");
  bool parallel = config.boolean("parallel_attn", true);
  int64_t norms =
      config.optionalInteger("num_ln_in_parallel_attn").value_or(newer ? 2 : 1);
  if (newer && norms == 2)
    model.residual = Residual::Parallel;
  else if (newer || parallel)
    model.residual = Residual::ParallelOneNorm;
}

static void readBloom(Config &config, Model &model) {
  StringRef widthKey = config.find("n_embed") ? "n_embed" : "hidden_size";
  StringRef layersKey =
      config.find("n_layer") ? "n_layer" : "num_hidden_layers";
  StringRef headsKey = config.find("n_head") ? "n_head" : "num_attention_heads";
  model.width = config.integer(widthKey);
  config.find("hidden_size");
  model.layers = readLayers(config, layersKey);
  model.vocabulary = config.integer("vocab_size");
  model.hidden = 4 * model.width;
  readHeads(config, model, headsKey, widthKey, "");
  model.alibiMost = kAlibiMost;
  model.embeddingNorm = true;
  model.eps = config.real("layer_norm_epsilon", 1e-5);
  model.qkvBias = model.outBias = model.mlpBias = true;
  model.gated = false;
  model.activation = "gelu";
  StringRef behind = "apply_residual_connection_post_layernorm";
  if (config.boolean(behind))
    config.error(behind, "a residual of normalised values cannot be read");
}

static constexpr StringLiteral kMptAlibi =
    "mpt is read with linear biases only: 'alibi' of 'attn_config' expects "
    "true";

/// The keys of `attn_config`, in which MPT has those of its attention.
static void readMptAttention(Config &config, Model &model) {
  const json::Value *alibi = config.find("alibi");
  if (!alibi || alibi->getAsBoolean() != true)
    config.error("alibi", kMptAlibi);
  for (StringRef key : {"qk_ln", "qk_gn", "clip_qkv", "prefix_lm",
                        "attn_uses_sequence_id", "sliding_window_size"}) {
    const json::Value *value = config.find(key);
    if (value && value->getAsBoolean() != false && value->getAsInteger() != -1)
      config.error(key, "'" + key + "' of 'attn_config' cannot be read");
  }
  model.alibiMost = config.real("alibi_bias_max", kAlibiMost);
  if (config.find("softmax_scale"))
    model.scoreScale = config.real("softmax_scale", 1);
  StringRef typeKey = "attn_type", keysKey = "kv_n_heads";
  std::string type = config.string(typeKey, "multihead_attention");
  std::optional<int64_t> keyHeads = config.optionalInteger(keysKey);
  if (type == "multiquery_attention")
    model.keyHeads = 1;
  else if (type == "grouped_query_attention")
    model.keyHeads = keyHeads.value_or(model.heads);
  else if (type != "multihead_attention")
    config.error(typeKey, "'attn_type' of 'attn_config' expects "
                          "multihead_attention, multiquery_attention or "
                          "grouped_query_attention, found '" +
                              type + "'");
  if (model.heads % model.keyHeads)
    config.error(keysKey, "'kv_n_heads' of 'attn_config' does not divide "
                          "'n_heads'");
}

static void readMpt(Config &config, Model &model) {
  model.width = config.integer("d_model");
  model.layers = readLayers(config, "n_layers");
  model.vocabulary = config.integer("vocab_size");
  model.hidden = SaturatingMultiply<uint64_t>(
      config.integer("expansion_ratio", 1, /*most=*/1024), model.width);
  readHeads(config, model, "n_heads", "d_model", "");
  StringRef attentionKey = "attn_config";
  if (!config.find(attentionKey))
    config.error(attentionKey, kMptAlibi);
  config.inside(attentionKey,
                [&](Config &fields) { readMptAttention(fields, model); });
  model.eps = config.real("layer_norm_epsilon", 1e-5);
  bool biases = !config.boolean("no_bias", true);
  model.qkvBias = model.outBias = model.mlpBias = biases;
  if (biases)
    model.norm = NormKind::Layer;
  model.gated = false;
  model.activation = "gelu";
  std::string type = config.string("norm_type", "low_precision_layernorm");
  if (!StringRef(type).ends_with("layernorm"))
    config.error("norm_type", "'norm_type' expects layernorm or "
                              "low_precision_layernorm, found '" +
                                  type + "'");
  if (config.find("logit_scale"))
    config.error("logit_scale", "scaled logits of mpt cannot be read");
}

static void readT5(Config &config, Model &model) {
  model.architecture = Architecture::EncoderDecoder;
  model.width = config.integer("d_model");
  model.hidden = config.integer("d_ff");
  model.vocabulary = config.integer("vocab_size");
  StringRef layers = "num_layers", decoder = "num_decoder_layers";
  model.encoderLayers = config.integer(layers, 1, /*most=*/100'000);
  model.layers = readLayers(config, config.find(decoder) ? decoder : layers);
  model.heads = model.keyHeads = config.integer("num_heads");
  model.headSize = config.integer("d_kv");
  RelativeBias bias;
  bias.buckets = config.integer("relative_attention_num_buckets", 4);
  bias.farthest = config.integer("relative_attention_max_distance");
  if (bias.buckets % 4)
    config.error("relative_attention_num_buckets",
                 "'relative_attention_num_buckets' expects a multiple of 4");
  if (bias.farthest <= bias.buckets / 2)
    config.error("relative_attention_max_distance",
                 "'relative_attention_max_distance' expects more than half of "
                 "the " +
                     Twine(bias.buckets) + " buckets");
  model.relativeBias = bias;
  model.eps = config.real("layer_norm_epsilon", 1e-6);
  StringRef key = "feed_forward_proj";
  std::string projection = config.string(key, "relu");
  StringRef kind = projection;
  model.gated = kind.consume_front("gated-");
  if (kind != "relu" && kind != "gelu" && kind != "silu")
    config.error(key, "'feed_forward_proj' expects relu, gelu or silu, with or "
                      "without 'gated-' in front, found '" +
                          projection + "'");
  model.activation = kind.str();
  model.scoreScale = 1; // scores are not divided
  if (config.boolean("tie_word_embeddings"))
    model.logitDivisor = std::sqrt(double(model.width));
}

/// The layers of BERT and of ViT, whose keys have the same names.
static void readEncoder(Config &config, Model &model) {
  model.width = config.integer("hidden_size");
  model.layers = readLayers(config, "num_hidden_layers");
  model.hidden = config.integer("intermediate_size");
  readHeads(config, model, "num_attention_heads", "hidden_size", "");
  model.eps = config.real("layer_norm_eps", 1e-12);
  model.outBias = model.mlpBias = true;
  model.gated = false;
  model.activation = readActivation(config, "hidden_act", "gelu");
}

static void readBert(Config &config, Model &model) {
  model.architecture = Architecture::TextEncoder;
  readEncoder(config, model);
  model.qkvBias = true;
  model.vocabulary = config.integer("vocab_size");
  model.positionsKey = "max_position_embeddings";
  model.positions = config.integer(model.positionsKey);
  model.tokenTypes = config.integer("type_vocab_size");
  StringRef key = "position_embedding_type";
  if (config.string(key, "absolute") != "absolute")
    config.error(key, "'" + key + "' expects 'absolute'");
  if (config.boolean("is_decoder"))
    config.error("is_decoder", "bert as a decoder cannot be read");
}

/// Classes are those that the config names, or counts.
static void readVit(Config &config, Model &model) {
  model.architecture = Architecture::ImageEncoder;
  readEncoder(config, model);
  model.qkvBias = config.boolean("qkv_bias", true);
  Image image;
  image.size = config.integer("image_size", 1, /*most=*/1 << 20);
  image.patch = config.integer("patch_size", 1, /*most=*/1 << 20);
  image.channels = config.integer("num_channels");
  if (image.size % image.patch)
    config.error("patch_size", "'patch_size' does not divide 'image_size'");
  model.image = image;
  const json::Value *named = config.find("id2label");
  const json::Object *labels = named ? named->getAsObject() : nullptr;
  model.classes = labels && !labels->empty() ? int64_t(labels->size())
                                             : config.integer("num_labels");
}

Model readModel(Config &config, StringRef name, Task task) {
  const Family &family = *findFamily(name);
  Model model;
  model.family = family.name.str();
  model.name = config.string("_name_or_path");
  model.norm = family.norm;
  model.normPlace = family.place;
  model.qkNorm = family.qkNorm;
  readTypes(config, model, task);
  switch (family.blocks) {
  case Blocks::Llama:
    readLlama(config, family, model);
    break;
  case Blocks::Gpt2:
    readGpt2(config, model);
    break;
  case Blocks::NeoX:
    readNeoX(config, model);
    break;
  case Blocks::Falcon:
    readFalcon(config, model);
    break;
  case Blocks::Bloom:
    readBloom(config, model);
    break;
  case Blocks::Mpt:
    readMpt(config, model);
    break;
  case Blocks::T5:
    readT5(config, model);
    break;
  case Blocks::Bert:
    readBert(config, model);
    break;
  case Blocks::Vit:
    readVit(config, model);
    break;
  }
  bool generates = task == Task::Decode || task == Task::Serve;
  if (generates && model.architecture == Architecture::EncoderDecoder)
    config.error("model_type",
                 "decoding of '" + name +
                     "' from what its encoder made cannot be written yet; "
                     "--task expects train or forward");
  else if (generates && model.architecture != Architecture::Decoder)
    config.error("model_type", "model_type '" + name +
                                   "' is an encoder, which has no next token; "
                                   "--task expects train or forward");
  model.tied = config.boolean("tie_word_embeddings");
  return model;
}

} // namespace shardc::import
