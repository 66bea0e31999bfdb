//===- FrameworkFile.cpp - A framework's options as they are written ------===//
//
// Three small readers: of command-line flags, of literal keyword arguments and
// assignments of Python, and of the keys of flat YAML. They know which names
// matter for a plan (docs/Frameworks.md#reading-options).
//
//===----------------------------------------------------------------------===//

#include "shardc/Pictures/FrameworkFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace shardc;

/// Names that are read.
static ArrayRef<StringRef> readNames(Framework framework) {
  static const StringRef megatron[] = {"tensor-model-parallel-size",
                                       "sequence-parallel",
                                       "pipeline-model-parallel-size",
                                       "pipeline-model-parallel-layout",
                                       "num-virtual-stages-per-pipeline-rank",
                                       "num-layers-per-virtual-pipeline-stage",
                                       "context-parallel-size",
                                       "expert-model-parallel-size",
                                       "expert-tensor-parallel-size",
                                       "seq-length",
                                       "micro-batch-size",
                                       "global-batch-size",
                                       "use-distributed-optimizer",
                                       "use-megatron-fsdp",
                                       "data-parallel-sharding-strategy",
                                       "num-distributed-optimizer-instances",
                                       "recompute-granularity",
                                       "recompute-method",
                                       "recompute-num-layers",
                                       "recompute-modules",
                                       "optimizer-cpu-offload"};
  static const StringRef torchtitan[] = {
      "data_parallel_replicate_degree",
      "data_parallel_shard_degree",
      "fsdp_reshard_after_forward",
      "tensor_parallel_degree",
      "enable_sequence_parallel",
      "context_parallel_degree",
      "expert_parallel_degree",
      "pipeline_parallel_degree",
      "pipeline_parallel_schedule",
      "pipeline_parallel_layers_per_stage",
      "pipeline_parallel_first_stage_less_layers",
      "pipeline_parallel_last_stage_less_layers",
      "num_pp_microbatches",
      "num_tokens_per_microbatch_per_dp_rank",
      "num_tokens_per_train_step",
      "max_context_length",
      "activation_checkpoint"};
  static const StringRef maxtext[] = {"ici_data_parallelism",
                                      "dcn_data_parallelism",
                                      "ici_fsdp_parallelism",
                                      "dcn_fsdp_parallelism",
                                      "ici_tensor_parallelism",
                                      "dcn_tensor_parallelism",
                                      "ici_tensor_sequence_parallelism",
                                      "dcn_tensor_sequence_parallelism",
                                      "ici_context_parallelism",
                                      "dcn_context_parallelism",
                                      "ici_expert_parallelism",
                                      "dcn_expert_parallelism",
                                      "ici_pipeline_parallelism",
                                      "dcn_pipeline_parallelism",
                                      "num_pipeline_microbatches",
                                      "num_layers_per_pipeline_stage",
                                      "num_pipeline_repeats",
                                      "shard_optimizer_over_data",
                                      "optimizer_memory_host_offload",
                                      "per_device_batch_size",
                                      "gradient_accumulation_steps",
                                      "max_target_length",
                                      "remat_policy"};
  return pickFor<ArrayRef<StringRef>>(framework, megatron, torchtitan, maxtext);
}

/// Names of what the program or the search says: how keys and values come to
/// queries, the order of positions, and the type of gradients.
static ArrayRef<StringRef> openNames(Framework framework) {
  static const StringRef megatron[] = {"cp-comm-type", "grad-reduce-in-bf16"};
  static const StringRef torchtitan[] = {"context_parallel_load_balancer"};
  static const StringRef maxtext[] = {"context_parallel_strategy",
                                      "context_parallel_load_balance"};
  return pickFor<ArrayRef<StringRef>>(framework, megatron, torchtitan, maxtext);
}

/// Names that change a plan in ways that roles of axes do not express.
static ArrayRef<StringRef> refusedNames(Framework framework) {
  static const StringRef megatron[] = {"use-torch-fsdp2",
                                       "hierarchical-context-parallel-sizes",
                                       "decoder-first-pipeline-num-layers",
                                       "decoder-last-pipeline-num-layers",
                                       "use-tp-pp-dp-mapping",
                                       "cpu-offloading",
                                       "fine-grained-activation-offloading",
                                       "distribute-saved-activations"};
  static const StringRef torchtitan[] = {"module_fqns_per_model_part",
                                         "enable_cpu_offload"};
  static const StringRef maxtext[] = {"ici_fsdp_transpose_parallelism",
                                      "dcn_fsdp_transpose_parallelism",
                                      "ici_sequence_parallelism",
                                      "dcn_sequence_parallelism",
                                      "ici_tensor_transpose_parallelism",
                                      "dcn_tensor_transpose_parallelism",
                                      "ici_context_usp_ulysses_parallelism",
                                      "dcn_context_usp_ulysses_parallelism",
                                      "ici_context_autoregressive_parallelism",
                                      "dcn_context_autoregressive_parallelism",
                                      "ici_autoregressive_parallelism",
                                      "dcn_autoregressive_parallelism",
                                      "pipeline_fsdp_ag_once"};
  return pickFor<ArrayRef<StringRef>>(framework, megatron, torchtitan, maxtext);
}

namespace {

class FileReader {
public:
  explicit FileReader(StringRef text) : text(text) {}

  FrameworkFile read();

private:
  Framework guess() const;
  void readFlags();
  void readKeywords();
  void readYaml();
  void add(StringRef name, StringRef value, size_t offset);
  std::string readToken();
  std::string literalAt(size_t at, size_t &end) const;
  size_t skipText(size_t at) const;

  StringRef text;
  size_t next = 0;
  FrameworkFile file;
};

} // namespace

static bool isWord(char c) { return isAlnum(c) || c == '_'; }

/// By the first line that is no comment: a flag or a list of them, a key of
/// YAML, or Python.
Framework FileReader::guess() const {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    if (line.starts_with("--") || line.contains("=(") || line.contains(" --"))
      return Framework::Megatron;
    StringRef word = line.take_while(isWord);
    if (!word.empty() && line.drop_front(word.size()).starts_with(":"))
      return Framework::MaxText;
    return Framework::Torchtitan;
  }
  return Framework::Megatron;
}

void FileReader::add(StringRef name, StringRef value, size_t offset) {
  auto error = [&](const Twine &message) {
    file.errors.push_back({message.str(), offset});
  };
  if (is_contained(refusedNames(file.framework), name)) {
    bool isOff = value == "1" || value.equals_insensitive("false") ||
                 value == "0" || value == "None";
    if (!isOff)
      error("'" + name + "' is not supported yet");
    return;
  }
  ArrayRef<StringRef> names = readNames(file.framework);
  if (is_contained(names, name)) {
    auto [it, isNew] = file.options.insert({name.str(), {value.str(), offset}});
    if (!isNew && it->second.text != value)
      error("'" + name + "' is " + value + " here and " + it->second.text +
            " above");
    return;
  }
  std::vector<std::string> &unread =
      is_contained(openNames(file.framework), name) ? file.open : file.ignored;
  constexpr unsigned kNear = 2;
  std::vector<StringRef> all(names);
  append_range(all, openNames(file.framework));
  for (StringRef known : all)
    if (known != name && name.edit_distance(known, true, kNear) <= kNear)
      return error("unknown option '" + name + "'; did you mean '" + known +
                   "'?");
  if (!is_contained(unread, name))
    unread.push_back(name.str());
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

/// The next word of a shell's list, without quotes; empty at the end.
std::string FileReader::readToken() {
  auto isSpace = [&](char c) { return llvm::isSpace(c) || c == '\\'; };
  while (next < text.size() && (isSpace(text[next]) || text[next] == '#')) {
    if (text[next] == '#')
      next = std::min(text.find('\n', next), text.size());
    else
      ++next;
  }
  std::string token;
  char quote = 0;
  for (; next < text.size(); ++next) {
    char c = text[next];
    if (quote ? c == quote : (c == '\'' || c == '"')) {
      quote = quote ? 0 : c;
      continue;
    }
    if (!quote && isSpace(c))
      break;
    token += c;
  }
  return token;
}

void FileReader::readFlags() {
  std::string name, value;
  size_t offset = 0;
  auto finish = [&] {
    if (!name.empty())
      add(name, StringRef(value).trim(), offset);
    name.clear();
    value.clear();
  };
  while (true) {
    std::string token = readToken();
    if (token.empty() && next >= text.size())
      break;
    StringRef word = token;
    size_t start = next - std::min(next, token.size());
    if (word == ")" || word.ends_with("=(")) {
      finish();
      continue;
    }
    if (!word.consume_front("--")) {
      value += " " + word.str();
      continue;
    }
    finish();
    auto [left, right] = word.split('=');
    name = left.str();
    value = right.str();
    offset = start;
  }
  finish();
}

//===----------------------------------------------------------------------===//
// Python
//===----------------------------------------------------------------------===//

/// The end of a comment or of a string that begins here, or `at`.
size_t FileReader::skipText(size_t at) const {
  if (text[at] == '#')
    return std::min(text.find('\n', at), text.size());
  if (text[at] != '"' && text[at] != '\'')
    return at;
  std::string quote(1, text[at]);
  if (text.substr(at).starts_with(std::string(3, text[at])))
    quote = std::string(3, text[at]);
  size_t end = text.find(quote, at + quote.size());
  return end == StringRef::npos ? text.size() : end + quote.size();
}

/// The value behind an equals sign: a string, a word, a product of numbers, or
/// the call of a config without arguments; empty if it is something else.
std::string FileReader::literalAt(size_t at, size_t &end) const {
  while (at < text.size() && text[at] == ' ')
    ++at;
  end = at;
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    end = skipText(at);
    return text.slice(at + 1, end - 1).str();
  }
  size_t stop = std::min(text.find_first_of(",)\n#", at), text.size());
  StringRef rest = text.slice(at, stop).trim();
  if (text.substr(stop).starts_with(")") && rest.ends_with("("))
    rest = text.slice(at, ++stop).trim(); // `FullAC.Config()`
  end = stop;
  if (rest.ends_with(".Config()"))
    return rest.str();
  SmallVector<StringRef> factors;
  rest.split(factors, '*');
  int64_t product = 1;
  for (StringRef factor : factors) {
    std::string digits = factor.trim().str();
    llvm::erase(digits, '_');
    int64_t number = 0;
    if (StringRef(digits).getAsInteger(10, number) ||
        __builtin_mul_overflow(product, number, &product)) {
      bool isLiteral = rest == "True" || rest == "False" || rest == "None";
      return isLiteral ? rest.str() : "";
    }
  }
  return std::to_string(product);
}

/// Every `name=value`, of keyword arguments and assignments alike.
void FileReader::readKeywords() {
  for (size_t at = 0; at < text.size();) {
    if (size_t end = skipText(at); end != at) {
      at = end;
      continue;
    }
    if (!isWord(text[at])) {
      ++at;
      continue;
    }
    size_t start = at;
    while (at < text.size() && isWord(text[at]))
      ++at;
    StringRef name = text.slice(start, at);
    size_t sign = text.find_first_not_of(' ', at);
    if (sign == StringRef::npos || text[sign] != '=' ||
        text.substr(sign).starts_with("=="))
      continue;
    size_t end = sign + 1;
    std::string value = literalAt(sign + 1, end);
    if (!value.empty()) {
      add(name, value, start);
      at = end;
      continue;
    }
    at = sign + 1;
    bool matters = is_contained(readNames(file.framework), name) ||
                   is_contained(refusedNames(file.framework), name);
    if (matters)
      file.errors.push_back({"'" + name.str() +
                                 "' expects a literal value, found '" +
                                 text.slice(sign + 1, end).trim().str() + "'",
                             start});
  }
}

//===----------------------------------------------------------------------===//
// YAML
//===----------------------------------------------------------------------===//

void FileReader::readYaml() {
  size_t start = 0;
  while (start < text.size()) {
    size_t end = std::min(text.find('\n', start), text.size());
    StringRef line = text.slice(start, end).split('#').first;
    auto [key, value] = line.split(':');
    size_t indent = key.size() - key.ltrim().size();
    key = key.trim();
    if (!key.empty() && line.contains(':') && all_of(key, isWord))
      add(key, value.trim().trim("'\""), start + indent);
    else if (!key.empty())
      file.errors.push_back(
          {"expected a line 'key: value', found '" + line.trim().str() + "'",
           start + indent});
    start = end + 1;
  }
}

FrameworkFile FileReader::read() {
  file.framework = guess();
  switch (file.framework) {
  case Framework::Megatron:
    readFlags();
    break;
  case Framework::Torchtitan:
    readKeywords();
    break;
  case Framework::MaxText:
    readYaml();
    break;
  }
  return std::move(file);
}

FrameworkFile shardc::readFrameworkFile(StringRef text) {
  return FileReader(text).read();
}
