//===- Config.cpp - A config's keys with their family's defaults ----------===//

#include "Config.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace shardc::import {

/// Keys that change neither shapes nor arithmetic of a step.
static constexpr StringLiteral ignoredKeys[] = {
    "_name_or_path",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "activation_function",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attention_softmax_in_fp32",
    "attn_pdrop",
    "auto_map",
    "aux_loss_alpha",
    "bias_dropout_fusion",
    "bos_token_id",
    "bos_token_ids",
    "cache_implementation",
    "classifier_dropout",
    "decoder_start_token_id",
    "dense_act_fn",
    "dropout_rate",
    "emb_pdrop",
    "embd_pdrop",
    "embed_pdrop",
    "embedding_fraction",
    "embedding_dropout",
    "eos_token_id",
    "encoder_stride",
    "ep_size",
    "experts_per_token",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initial_context_length",
    "initializer_factor",
    "initializer_range",
    "inference_runner",
    "init_config",
    "init_device",
    "is_encoder_decoder",
    "is_gated_act",
    "label2id",
    "learned_pos_emb",
    "masked_softmax_fusion",
    "max_batch_size",
    "max_position_embeddings",
    "max_seq_len",
    "max_sequence_length",
    "model_max_length",
    "model_type",
    "n_ctx",
    "n_inner",
    "n_positions",
    "num_labels",
    "num_nextn_predict_layers",
    "offset_alibi",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "pad_key_length",
    "pooler_act",
    "pooler_output_size",
    "pad_token_id",
    "pre_allocate_kv_cache",
    "pretraining_tp",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "residual_dropout",
    "rope_parameters",
    "rope_scaling",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "runner_max_sequence_length",
    "scale_attention_softmax_in_fp32",
    "seq_aux",
    "seq_length",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "tokenizer_name",
    "transformers_version",
    "unk_token_id",
    "use_cache",
    "validate_runner_input",
    "verbose",
};

/// Keys that change nothing at the value that configs publish. With another one
/// they may mean a model that is not the one that is read.
static constexpr std::pair<StringLiteral, StringLiteral> harmlessValues[] = {
    {"add_cross_attention", "false"},
    {"apply_residual_connection_post_layernorm", "false"},
    {"attention_bias", "false"},
    {"ff_factor", "4"},
    {"full_attn_mod", "1"},
    {"interpolate_factor", "1"},
    {"lm_head_bias", "false"},
    {"mlp_bias", "false"},
    {"use_mrope", "false"},
};

/// True if a key that nobody asks for has no meaning that is lost.
static bool isIgnored(StringRef key, const json::Value &value) {
  return is_contained(ignoredKeys, key) ||
         any_of(harmlessValues, [&](const auto &each) {
           return each.first == key &&
                  cantFail(json::parse(each.second)) == value;
         });
}

std::string printable(StringRef text, size_t most) {
  std::string line;
  for (char c : text.take_front(most))
    line += c >= ' ' && c < 127 ? c : '?';
  return line + (text.size() > most ? "..." : "");
}

ConfigMessage messageAt(const Twine &text, size_t offset) {
  return {printable(text.str(), 400), offset, {}};
}

/// Where the keys of the object behind byte `start` stand. Of a key that stands
/// twice the last one counts, as it does for the parser.
static StringMap<size_t> findKeys(StringRef text, size_t start) {
  StringMap<size_t> offsets;
  unsigned depth = 0;
  for (size_t at = text.find('{', start); at < text.size(); ++at) {
    char c = text[at];
    if (c == '{' || c == '[')
      ++depth;
    if ((c == '}' || c == ']') && --depth == 0)
      break;
    if (c != '"')
      continue;
    size_t begin = at++;
    for (; at < text.size() && text[at] != '"'; ++at)
      at += text[at] == '\\';
    StringRef inside = text.slice(begin + 1, at);
    if (depth == 1 && text.substr(at + 1).ltrim().starts_with(":"))
      offsets[inside] = begin;
  }
  return offsets;
}

Config::Config(StringRef text, size_t start, const json::Object &object,
               const json::Object &defaults)
    : text(text), start(start), offsets(findKeys(text, start)), object(object),
      defaults(defaults) {}

const json::Value *Config::find(StringRef key) {
  asked.insert(key);
  const json::Value *value = object.get(key);
  if (!value)
    value = defaults.get(key);
  return value && value->kind() != json::Value::Null ? value : nullptr;
}

/// ", found 'x'": a value in the words of its file, on one line.
static std::string foundText(const json::Value &value) {
  if (value.getAsObject())
    return ", found an object";
  if (value.getAsArray())
    return ", found a list";
  std::string text;
  raw_string_ostream out(text);
  if (std::optional<StringRef> word = value.getAsString())
    out << '\'' << *word << '\'';
  else
    out << value;
  return ", found " + printable(text, 40);
}

std::optional<int64_t> Config::wholeNumber(StringRef key,
                                           const json::Value &value,
                                           int64_t least, int64_t most) {
  std::optional<int64_t> number = value.getAsInteger();
  if (number && *number >= least && *number <= most)
    return number;
  error(key, "'" + key + "' expects a whole number from " + Twine(least) +
                 " to " + (most == kMost ? "2^40" : std::to_string(most)) +
                 foundText(value));
  return std::nullopt;
}

int64_t Config::integer(StringRef key, int64_t least, int64_t most) {
  const json::Value *value = find(key);
  if (!value) {
    error(key, "'" + key + "' is missing");
    missing.push_back(key.str());
  }
  return value ? wholeNumber(key, *value, least, most).value_or(1) : 1;
}

std::optional<int64_t> Config::optionalInteger(StringRef key, int64_t least) {
  const json::Value *value = find(key);
  return value ? wholeNumber(key, *value, least, kMost) : std::nullopt;
}

std::vector<int64_t> Config::integers(StringRef key, int64_t least,
                                      int64_t most) {
  const json::Value *value = find(key);
  if (!value)
    return {};
  const json::Array *list = value->getAsArray();
  if (!list)
    error(key, "'" + key + "' expects a list" + foundText(*value));
  std::vector<int64_t> numbers;
  for (const json::Value &each : list ? *list : json::Array()) {
    std::optional<int64_t> number = wholeNumber(key, each, least, most);
    if (!number)
      break; // one error of a long list says enough
    numbers.push_back(*number);
  }
  return numbers;
}

double Config::real(StringRef key, double none) {
  const json::Value *value = find(key);
  if (!value)
    return none;
  std::optional<double> number = value->getAsNumber();
  if (number && std::isfinite(*number) && *number > 0)
    return *number;
  error(key, "'" + key + "' expects a number above 0" + foundText(*value));
  return 1;
}

bool Config::boolean(StringRef key, bool none) {
  const json::Value *value = find(key);
  if (!value)
    return none;
  std::optional<bool> flag = value->getAsBoolean();
  if (!flag)
    error(key, "'" + key + "' expects true or false" + foundText(*value));
  return flag.value_or(none);
}

std::string Config::string(StringRef key, StringRef none) {
  const json::Value *value = find(key);
  if (!value)
    return none.str();
  std::optional<StringRef> word = value->getAsString();
  if (!word)
    error(key, "'" + key + "' expects a string" + foundText(*value));
  return word.value_or(none).str();
}

const json::Object *Config::fields(StringRef key) {
  const json::Value *value = find(key);
  if (value && !value->getAsObject())
    error(key, "'" + key + "' expects an object" + foundText(*value));
  return value ? value->getAsObject() : nullptr;
}

void Config::inside(StringRef key, function_ref<void(Config &)> read) {
  const json::Object *object = fields(key);
  if (!object)
    return;
  json::Object defaults;
  Config inner(text, offsetOf(key), *object, defaults);
  read(inner);
  append_range(errors, inner.errors);
}

size_t Config::offsetOf(StringRef key) const {
  auto found = offsets.find(key);
  return found == offsets.end() ? start : found->second;
}

void Config::error(StringRef key, const Twine &message) {
  errors.push_back(messageAt(message, offsetOf(key)));
}

std::vector<StringRef> Config::unknownKeys() const {
  std::vector<StringRef> result;
  for (const auto &[key, value] : object)
    if (!asked.contains(key) && !isIgnored(key, value))
      result.push_back(key);
  llvm::sort(result, [&](StringRef a, StringRef b) {
    return std::pair(offsetOf(a), a) < std::pair(offsetOf(b), b);
  });
  return result;
}

size_t Config::countKnownKeys() const {
  return count_if(object, [&](const auto &each) {
    return asked.contains(each.first) &&
           !is_contained(ignoredKeys, StringRef(each.first));
  });
}

std::vector<ConfigMessage> Config::unknownKeyWarnings() const {
  static constexpr size_t most = 16;
  std::vector<ConfigMessage> result;
  for (StringRef key : unknownKeys())
    result.push_back(messageAt("'" + key + "' is not known and has no effect",
                               offsetOf(key)));
  if (result.size() > most) {
    size_t others = result.size() - most;
    result.resize(most);
    result.push_back(
        messageAt(Twine(others) + " other keys are not known either", start));
  }
  return result;
}

} // namespace shardc::import
