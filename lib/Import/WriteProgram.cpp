//===- WriteProgram.cpp - The text of a model's program -------------------===//
//
// Writes the program that a person would: dims with their meaning, one repeat
// over the layers, and layers that are called where not all are alike.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace shardc::import {

/// 14336 as 14_336.
static std::string digits(int64_t number) {
  std::string text = std::to_string(number);
  if (number >= 10'000)
    for (size_t at = text.size(); at > 3;) {
      at -= 3;
      text.insert(at, "_");
    }
  return text;
}

/// A real number of the language: digits on both sides of the point, or an
/// exponent.
static std::string real(double number) {
  if (number == std::floor(number) && number < 1e15)
    return digits(int64_t(number)) + ".0";
  std::string text;
  for (int precision = 1; precision <= 17; ++precision) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.*g", precision, number);
    text = buffer;
    if (std::strtod(buffer, nullptr) == number)
      break;
  }
  // 1e-05 as 1e-5.
  size_t e = text.find("e-0");
  if (e != std::string::npos)
    text.erase(e + 2, 1);
  return text;
}

static std::string theta(double number) {
  bool isWhole = number == std::floor(number) && number < 1e15;
  return isWhole ? digits(int64_t(number)) : real(number);
}

static std::string joined(ArrayRef<StringRef> parts) {
  std::string text;
  for (StringRef part : parts)
    if (!part.empty())
      text += (text.empty() ? "" : ", ") + part.str();
  return text;
}

/// The element type of scales, which are no parameters.
static constexpr StringLiteral kScaleType = "f8e8m0";

namespace {

/// Layers that repeat: `count` times those of `kinds` in turn.
struct Run {
  std::vector<LayerKind> kinds;
  int64_t count;
};

class Writer {
public:
  Writer(const Model &model, const ImportOptions &options)
      : m(model), options(options), serves(options.task == Task::Serve),
        caches(serves || options.task == Task::Decode) {}

  std::optional<std::string> write();

private:
  void weight(StringRef name, ArrayRef<StringRef> dims, StringRef type = "");
  void line(const Twine &text);
  void dim(StringRef name, int64_t extent) { extents[name] = extent; }

  std::string normalised(StringRef value, StringRef index, StringRef scale,
                         StringRef bias = "") const;
  void norm(StringRef name, StringRef from, StringRef scale, StringRef bias,
            StringRef index = "D");
  void declareNorm(StringRef scale, StringRef bias);
  std::string rotated(StringRef value, StringRef sequence, StringRef index,
                      double theta) const;
  /// `NAME[dims] = VALUE`, rotated where positions rotate.
  void project(StringRef name, StringRef left, StringRef value,
               StringRef sequence, double theta);
  void addTo(StringRef value, StringRef post);
  bool isImage() const { return m.image.has_value(); }
  /// All positions are read, by the whole model.
  bool isEncoder() const {
    return m.architecture == Architecture::TextEncoder || isImage();
  }
  bool isEncoderDecoder() const {
    return m.architecture == Architecture::EncoderDecoder;
  }
  bool normsBefore() const {
    return m.normPlace == NormPlace::Before || m.normPlace == NormPlace::Both;
  }
  bool normsBehind() const { return m.normPlace != NormPlace::Before; }

  void attention(const LayerKind &kind, StringRef window);
  void writeSlopes();
  void crossAttention();
  void writeBuckets();
  void writeEncoder();
  void writeDecoder();
  void writeSlots();
  void latentAttention(const LayerKind &kind);
  void mlp(int64_t hidden, StringRef index, StringRef suffix = "",
           StringRef normed = "m");
  void denseMlp();
  std::string alongSum(StringRef index) const;
  void expertWeight(StringRef name, StringRef summed, StringRef other);
  void writeExpert(const std::string &slots);
  void experts();

  void findRuns();
  void writeDims();
  void writeInputs();
  void writeEmbedding();
  void writeImageInputs();
  void writePatches();
  void writeHead();
  void writePooler();
  void writeClasses();
  void writeRuns();
  void writeInline(const LayerKind &kind);
  void writeParts();
  std::string call(const LayerKind &kind, StringRef argument) const;
  std::string attendName(const LayerKind &kind) const;
  int64_t countOf(function_ref<bool(const LayerKind &)> holds) const {
    return count_if(m.layers, holds);
  }
  StringRef runDim(size_t run) const { return runNames[run]; }
  /// Tokens of a served request that it generates, and all before them.
  int64_t generated() const { return *options.generate; }
  int64_t prompt() const { return *options.sequence - generated(); }
  /// Where the tokens stand, if there are caches.
  std::string position() const { return "pos[" + bt + "]"; }
  /// True if the layer's cache has the positions of its window alone.
  bool hasRing(const LayerKind &kind) const {
    return caches && kind.window && *kind.window < *options.sequence;
  }
  bool hasRings() const {
    return any_of(m.layers,
                  [&](const LayerKind &each) { return hasRing(each); });
  }
  /// True if calls of layers say how many positions these attend to.
  bool namesWindows() const {
    return !hasRings() && any_of(m.layers, [](const LayerKind &each) {
      return each.window.has_value();
    });
  }
  /// The key that a token writes in a cache.
  std::string slot(const LayerKind &kind) const {
    return hasRing(kind) ? "slot[" + bt + "]" : position();
  }
  /// True if both are the same attention but for the window, which a call says.
  bool sameAttention(const LayerKind &a, const LayerKind &b) const {
    return a.theta == b.theta && hasRing(a) == hasRing(b);
  }

  const Model &m;
  const ImportOptions &options;
  /// The task serves; it reads and fills caches.
  bool serves, caches;
  std::string body;
  std::string indent;
  StringMap<int64_t> extents;
  std::vector<Run> runs;
  std::vector<std::string> runNames;
  /// Calls of the layer, or iterations of the repeat, being written.
  int64_t multiplicity = 1;
  uint64_t parameters = 0;
  /// Heads of queries, of keys and values: `K, G` and `K`; `N` for both.
  std::string queryHeads, keyHeads;
  /// Indices of tokens, and of tokens as keys.
  std::string sequence = "T", context = "S";
  /// Indices of a value of each token, of each token as a key.
  std::string bt, bs;
  /// A token sees those in front of it.
  bool isCausal = true;
};

} // namespace

void Writer::line(const Twine &text) {
  std::string str = text.str();
  body += (str.empty() ? "" : indent + str) + "\n";
}

void Writer::weight(StringRef name, ArrayRef<StringRef> dims, StringRef type) {
  SmallVector<StringRef> parts;
  uint64_t size = multiplicity;
  std::string list = joined(dims);
  SmallVector<StringRef> names;
  StringRef(list).split(names, ", ");
  for (StringRef each : names)
    size = SaturatingMultiply<uint64_t>(size, extents.lookup(each));
  if (type != kScaleType)
    parameters = SaturatingAdd(parameters, size);
  bool inLayer = !indent.empty();
  if (type.empty())
    type = names.size() > 1 && inLayer ? m.matrixType : m.type;
  line("weight " + name + ": " + type + "[" + list + "]");
}

std::string Writer::normalised(StringRef value, StringRef index,
                               StringRef scale, StringRef bias) const {
  bool layer = m.norm == NormKind::Layer || m.norm == NormKind::LayerScale;
  return ((layer ? "layernorm[" : "rmsnorm[") + index + "](" + value + ", " +
          (m.norm == NormKind::RmsPlusOne ? "1.0 + " : "") + scale +
          (m.norm == NormKind::Layer && !bias.empty() ? ", " + bias : "") +
          ", eps=" + real(m.eps) + ")")
      .str();
}

void Writer::declareNorm(StringRef scale, StringRef bias) {
  weight(scale, {"D"});
  if (m.norm == NormKind::Layer)
    weight(bias, {"D"});
}

void Writer::norm(StringRef name, StringRef from, StringRef scale,
                  StringRef bias, StringRef index) {
  line(name + "[" + bt + ", D] = " + normalised(from, index, scale, bias));
}

std::string Writer::rotated(StringRef value, StringRef sequence,
                            StringRef index, double base) const {
  std::string text =
      caches ? ("rope[" + index + "](" + value + ", at=" + position()).str()
             : ("rope[" + sequence + ", " + index + "](" + value).str();
  return text + ", theta=" + theta(base) + ")";
}

void Writer::project(StringRef name, StringRef left, StringRef value,
                     StringRef sequence, double base) {
  if (!m.rotary) {
    line(name + left + " = " + value);
    return;
  }
  if (m.rotary == m.headSize) {
    line(name + left + " = " + rotated(value, sequence, "H", base));
    return;
  }
  // The first elements of a head rotate.
  std::string plain = (StringRef(name.split('[').first) + "all").str();
  std::string list = left.str();
  for (std::string place : {position(), "slot[" + bt + "]"}) {
    std::string written = joined({"B", place});
    if (size_t at = list.find(written); caches && at != std::string::npos)
      list.replace(at, written.size(), bs);
  }
  line(plain + list + " = " + value);
  std::string first =
      ("slice[H: 0.." + Twine(m.rotary) + " -> R](" + plain + ")").str();
  std::string rest = ("slice[H: " + Twine(m.rotary) + ".." + Twine(m.headSize) +
                      " -> U](" + plain + ")")
                         .str();
  line(name + left + " = concat[(R, U) -> H](" +
       rotated(first, sequence, "R", base) + ", " + rest + ")");
}

/// Adds a part's result to x, normalised behind it where the family does.
void Writer::addTo(StringRef value, StringRef post) {
  std::string factor =
      m.residualScale == 1 ? "" : real(m.residualScale) + " * ";
  if (m.normPlace == NormPlace::AfterSum) {
    norm("x", ("x[" + bt + ", D] + " + value).str(), ("g" + post).str(),
         ("b" + post).str());
    return;
  }
  if (m.normPlace == NormPlace::Before) {
    line("x[" + bt + ", D] += " + factor + value);
    return;
  }
  line("p" + post + "[" + bt + ", D] = " + value);
  line("x += " + factor +
       normalised(("p" + post).str(), "D", ("g" + post).str()));
}

void Writer::attention(const LayerKind &kind, StringRef window) {
  StringRef q = queryHeads, k = keyHeads;
  bool pre = normsBefore();
  StringRef keyIndex = hasRing(kind) ? StringRef("W") : StringRef(context);
  if (caches) {
    line("state kc: " + m.type + "[" + joined({"B", keyIndex, k, "H"}) + "]");
    line("state vc: " + m.type + "[" + joined({"B", keyIndex, k, "H"}) + "]");
  }
  if (pre)
    declareNorm("gattn", "battn");
  weight("Wq", {"D", q, "H"});
  weight("Wk", {"D", k, "H"});
  weight("Wv", {"D", k, "H"});
  weight("Wo", {q, "H", "D"});
  if (m.qkvBias) {
    weight("bq", {q, "H"}, m.type);
    weight("bk", {k, "H"}, m.type);
    weight("bv", {k, "H"}, m.type);
  }
  if (m.outBias)
    weight("bo", {"D"});
  bool allHeads = m.qkNorm == QkNorm::AllHeads;
  if (m.qkNorm != QkNorm::None) {
    weight("gq", {allHeads ? q : "", "H"}, m.type);
    weight("gk", {allHeads ? k : "", "H"}, m.type);
  }
  if (m.sinks)
    weight("sinks", {q}, m.type);
  if (normsBehind())
    declareNorm("gpost", "bpost");

  StringRef from = pre ? "a" : "x";
  if (pre)
    norm("a", "x", "gattn", "battn");
  auto product = [&](StringRef tokens, StringRef name, StringRef heads) {
    std::string text = (from + "[" + tokens + ", D] * W" + name + "[" +
                        joined({"D", heads, "H"}) + "]")
                           .str();
    if (m.qkvBias)
      text += (" + b" + name + "[" + joined({heads, "H"}) + "]").str();
    if (m.qkNorm != QkNorm::None && name != "v")
      text = normalised(text, allHeads ? joined({heads, "H"}) : "H",
                        ("g" + name).str());
    return text;
  };
  std::string keys = joined({"B", caches ? slot(kind) : context, k, "H"});
  std::string keyName = caches ? "kc" : "k", valueName = caches ? "vc" : "v";
  project("q", ("[" + joined({bt, q, "H"}) + "]"), product(bt, "q", q), "T",
          kind.theta);
  project(keyName, "[" + keys + "]", product(bs, "k", k), "S", kind.theta);
  line(valueName + "[" + keys + "] = " + product(bs, "v", k));
  std::string arguments = keyName + ", " + valueName;
  if (isCausal)
    arguments += ", causal=true";
  if (!window.empty())
    arguments += (", window=" + window).str();
  if (caches)
    arguments += ", at=" + position();
  if (hasRing(kind))
    arguments += ", key_at=kp";
  if (m.alibiMost || m.relativeBias)
    arguments += ", bias=bias";
  if (m.scoreScale)
    arguments += ", scale=" + real(*m.scoreScale);
  if (m.scoreCap)
    arguments += ", softcap=" + real(*m.scoreCap);
  if (m.sinks)
    arguments += ", sink=sinks";
  line("o[" + joined({bt, q, "H"}) + "] = attention[H, " + keyIndex + "](q, " +
       arguments + ")");
  addTo("o[" + joined({bt, q, "H"}) + "] * Wo[" + joined({q, "H", "D"}) + "]" +
            (m.outBias ? " + bo[D]" : ""),
        "post");
}

void Writer::latentAttention(const LayerKind &kind) {
  const Latent &latent = *m.latent;
  if (caches)
    line("state kv: " + m.type + "[B, S, A]");
  weight("gattn", {"D"});
  if (latent.queryRank) {
    weight("Wqa", {"D", "Rq"});
    weight("gq", {"Rq"});
  }
  StringRef from = latent.queryRank ? "Rq" : "D";
  weight("Wqn", {from, "N", "A1"});
  weight("Wqr", {from, "N", "A2"});
  weight("Wkv", {"D", "R"});
  weight("gkv", {"R"});
  weight("Wkn", {"R", "N", "A1"});
  weight("Wkr", {"D", "A2"});
  weight("Wv", {"R", "N", "U"});
  weight("Wo", {"N", "U", "D"});
  norm("a", "x", "gattn", "");
  std::string source = "a[" + bt + ", D]";
  if (latent.queryRank) {
    line("ql[" + bt +
         ", Rq] = " + normalised("a[" + bt + ", D] * Wqa[D, Rq]", "Rq", "gq"));
    source = "ql[" + bt + ", Rq]";
  }
  line("qn[" + bt + ", N, A1] = " + source + " * Wqn[" + from + ", N, A1]");
  line("qr[" + bt + ", N, A2] = " +
       rotated(source + " * Wqr[" + from.str() + ", N, A2]", "T", "A2",
               kind.theta));
  line("c[" + bs +
       ", R] = " + normalised("a[" + bs + ", D] * Wkv[D, R]", "R", "gkv"));
  line("kr[" + bs + ", A2] = " +
       rotated("a[" + bs + ", D] * Wkr[D, A2]", "S", "A2", kind.theta));
  if (caches) {
    line("// Queries go to the latent, which all heads share (absorbed).");
    if (serves)
      line("// Prefill does so, too, with more FLOPs than expanded keys take.");
    line("kv[B, " + position() + ", A] = concat[(R, A2) -> A](c, kr)");
    line("ql2[" + bt + ", N, R] = qn[" + bt + ", N, A1] * Wkn[R, N, A1]");
    line("q[" + bt + ", N, A] = concat[(R, A2) -> A](ql2, qr)");
    line("vl = slice[A: 0.." + Twine(latent.rank) + " -> R](kv)");
    line("ol[" + bt + ", N, R] = attention[A, S](q, kv, vl, causal=true, at=" +
         position() + ", scale=" +
         real(1 / std::sqrt(double(latent.plain + latent.rotary))) + ")");
    line("o[" + bt + ", N, U] = ol[" + bt + ", N, R] * Wv[R, N, U]");
  } else {
    line("kn[B, S, N, A1] = c[B, S, R] * Wkn[R, N, A1]");
    line("ks[B, S, N, A2] = kr[B, S, A2]");
    line("v[B, S, N, U] = c[B, S, R] * Wv[R, N, U]");
    line("o[B, T, N, U] = attention[A, S](concat[(A1, A2) -> A](qn, qr), "
         "concat[(A1, A2) -> A](kn, ks), v, causal=true)");
  }
  addTo("o[" + bt + ", N, U] * Wo[N, U, D]", "");
}

/// Declares and computes `hSUFFIX`, the hidden values.
void Writer::mlp(int64_t, StringRef index, StringRef suffix, StringRef normed) {
  std::string from = (normed + "[" + bt + ", D]").str();
  std::string matrix = ("[D, " + index + "]").str();
  std::string bias =
      m.mlpBias ? (" + bup" + suffix + "[" + index + "]").str() : "";
  auto half = [&](StringRef name) {
    return from + " * W" + name.str() + suffix.str() + matrix;
  };
  std::string text =
      m.gated ? m.activation + "(" + half("gate") +
                    (m.mlpBias ? (" + bgate[" + index + "]").str() : "") +
                    ") * (" + half("up") + bias + ")"
              : m.activation + "(" + half("up") + bias + ")";
  line("h" + suffix + "[" + bt + ", " + index + "] = " + text);
}

void Writer::denseMlp() {
  StringRef f = m.experts ? "F1" : "F";
  bool pre = normsBefore();
  bool shared = m.residual == Residual::ParallelOneNorm;
  if (pre && m.residual == Residual::Sequential)
    declareNorm("gmlp", "bmlp");
  if (m.gated)
    weight("Wgate", {"D", f});
  weight("Wup", {"D", f});
  weight("Wdown", {f, "D"});
  if (m.mlpBias) {
    if (m.gated)
      weight("bgate", {f});
    weight("bup", {f});
    weight("bdown", {"D"});
  }
  if (normsBehind())
    declareNorm("glast", "blast");
  if (pre && m.residual == Residual::Sequential)
    norm("m", "x", "gmlp", "bmlp");
  mlp(m.hidden, f, "", shared ? "a" : pre ? "m" : "x");
  addTo(("h[" + bt + ", " + f + "] * Wdown[" + f + ", D]" +
         (m.mlpBias ? " + bdown[D]" : ""))
            .str(),
        "last");
}

/// The indices of a matrix of each expert along a sum: `D`, or of its blocks
/// and of their elements.
std::string Writer::alongSum(StringRef index) const {
  return m.expertBlock ? (index + "z, Z").str() : index.str();
}

void Writer::expertWeight(StringRef name, StringRef summed, StringRef other) {
  weight(("W" + name).str(), {"E", alongSum(summed), other}, m.expertType);
  if (m.expertBlock)
    weight(("s" + name).str(), {"E", (summed + "z").str(), other}, kScaleType);
}

/// `ye` of `xe`: each expert's MLP over its slots.
void Writer::writeExpert(const std::string &slots) {
  const Experts &e = *m.experts;
  auto value = [&](StringRef name, const Twine &indices) {
    return (name + "[E, " + slots + ", " + indices + "]").str();
  };
  auto product = [&](StringRef of, StringRef name, StringRef summed,
                     StringRef other) {
    std::string sum = alongSum(summed);
    std::string matrix = ("W" + name + "[E, " + sum + ", " + other + "]").str();
    if (m.expertBlock)
      matrix = ("(" + matrix + " * s" + name + "[E, " + summed + "z, " + other +
                "])")
                   .str();
    return value(of, sum) + " * " + matrix +
           (e.biases ? (" + b" + name + "[E, " + other + "]").str() : "");
  };
  auto half = [&](StringRef name) { return product("xe", name, "D", "F"); };
  std::string inner = "[E, " + slots + ", F]";
  if (e.clamp) {
    std::string limit = real(*e.clamp);
    line("gate" + inner + " = minimum(" + half("gate") + ", " + limit + ")");
    line("up" + inner + " = maximum(minimum(" + half("up") + ", " + limit +
         "), -" + limit + ")");
    line("h" + inner + " = (up + 1.0) * gate * sigmoid(1.702 * gate)");
  } else {
    line("h" + inner + " = " + m.activation + "(" + half("gate") + ") * (" +
         half("up") + ")");
  }
  std::string from = "h";
  if (m.expertBlock) {
    from = "hz";
    line(value("hz", alongSum("F")) + " = split[F -> (Fz, Z)](h)");
  }
  line(value("ye", "D") + " = " + product(from, "down", "F", "D"));
}

void Writer::experts() {
  const Experts &e = *m.experts;
  std::string k = std::to_string(e.picks);
  // Groups of tokens are dispatched apart.
  std::string tokens = serves ? "P, J, P2, J2" : caches ? "P, J" : "B, T";
  std::string group = serves ? "P, P2" : caches ? "P" : "B";
  weight("gmlp", {"D"});
  weight("Wrouter", {"D", "E"}, m.type);
  if (e.biases)
    weight("brouter", {"E"});
  if (e.choosingBias)
    weight("bias", {"E"}, "f32");
  expertWeight("gate", "D", "F");
  expertWeight("up", "D", "F");
  expertWeight("down", "F", "D");
  if (e.biases) {
    weight("bgate", {"E", "F"}, m.type);
    weight("bup", {"E", "F"}, m.type);
    weight("bdown", {"E", "D"}, m.type);
  }
  if (e.shared) {
    weight("Wgates", {"D", "Fs"});
    weight("Wups", {"D", "Fs"});
    weight("Wdowns", {"Fs", "D"});
    if (e.sharedGate)
      weight("Wmix", {"D"});
  }
  norm("m", "x", "gmlp", "");
  std::string parts = "split[B -> (P, J)](m)";
  if (serves)
    parts = "split[T -> (P2, J2)](" + parts + ")";
  if (caches)
    line("md[" + tokens + ", D] = " + parts);
  std::string from = caches ? "md" : "m";
  std::string routed = "f32(" + from + "[" + tokens + ", D] * Wrouter[D, E]" +
                       (e.biases ? " + brouter[E]" : "") + ")";
  if (!e.softmaxOfPicked)
    routed = (e.sigmoid ? "sigmoid(" : "softmax[E](") + routed + ")";
  line("s: f32[" + tokens + ", E] = " + routed);
  std::string scores = "s", limit;
  if (e.choosingBias) {
    line("sb[" + tokens + ", E] = s[" + tokens + ", E] + bias[E]");
    scores = "sb";
  }
  if (e.groups > 1) {
    line("// The " + Twine(e.groupLimit) + " blocks of experts with the best " +
         (e.sigmoid ? "two" : "one") + ", and " + k + " experts of these.");
    line("b[" + tokens + ", Q, M] = split[E -> (Q, M)](" + scores + ")");
    line("best[" + tokens + ", Q] = " +
         (e.sigmoid ? "sum[M](where(topk[M](b, k=2), b, 0.0))" : "max[M](b)"));
    line("open[" + tokens + ", Q, M] = where(topk[Q](best, k=" +
         Twine(e.groupLimit) + "), b, -inf)");
    scores = "merge[(Q, M) -> E](open)";
    limit = ", blocks=" + std::to_string(e.groups) +
            ", limit=" + std::to_string(e.groupLimit);
  }
  line("p[" + tokens + ", E] = topk[E](" + scores + ", k=" + k + ")");
  line("w[" + tokens + ", E] = " +
       (e.softmaxOfPicked ? "softmax[E](where(p, s, -inf))"
                          : "where(p, s, 0.0)"));
  std::string weights =
      e.normalise && !e.softmaxOfPicked ? "w / sum[E](w)" : "w";
  if (e.scale != 1)
    weights = real(e.scale) + " * " + weights;
  std::string how = ", k=" + k + limit + ", dropless=true)";
  std::string slots = group + ", C";
  std::string dispatched = "dispatch[E, C](" + from + ", p" + how;
  if (m.expertBlock)
    dispatched = "split[D -> (Dz, Z)](" + dispatched + ")";
  line("xe[E, " + slots + ", " + alongSum("D") + "] = " + dispatched);
  writeExpert(slots);
  std::string result =
      "combine[E, C](ye, p, " + m.type + "(" + weights + ")" + how;
  std::string whole = "merge[(P, J) -> B](z)";
  if (serves)
    whole = "merge[(P2, J2) -> T](" + whole + ")";
  if (caches)
    line("z[" + tokens + ", D] = " + result);
  line("x[" + bt + ", D] += " + (caches ? whole : result));
  if (!e.shared)
    return;
  mlp(e.shared, "Fs", "s");
  if (e.sharedGate) {
    line("mix[" + bt + "] = sigmoid(m[" + bt + ", D] * Wmix[D])");
    line("ys[" + bt + ", D] = hs[" + bt + ", Fs] * Wdowns[Fs, D]");
    line("x[" + bt + ", D] += mix[" + bt + "] * ys[" + bt + ", D]");
  } else {
    line("x[" + bt + ", D] += hs[" + bt + ", Fs] * Wdowns[Fs, D]");
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Greedily the period that covers most layers; of equal ones the shortest.
void Writer::findRuns() {
  size_t size = m.layers.size();
  for (size_t at = 0; at < size;) {
    size_t bestPeriod = 1, bestCount = 1;
    for (size_t period = 1; period <= 16 && at + period <= size; ++period) {
      size_t count = 1;
      while (at + (count + 1) * period <= size &&
             std::equal(m.layers.begin() + at, m.layers.begin() + at + period,
                        m.layers.begin() + at + count * period))
        ++count;
      if ((count > 1 || period == 1) &&
          count * period > bestCount * bestPeriod) {
        bestPeriod = period;
        bestCount = count;
      }
    }
    runs.push_back({{m.layers.begin() + at, m.layers.begin() + at + bestPeriod},
                    int64_t(bestCount)});
    at += bestPeriod * bestCount;
  }
  for (size_t i = 0; i < runs.size(); ++i)
    runNames.push_back(i + 1 == runs.size() ? "L"
                                            : "L" + std::to_string(i + 1));
}

void Writer::writeInline(const LayerKind &kind) {
  std::string window = hasRing(kind) ? "W"
                       : kind.window ? std::to_string(*kind.window)
                                     : "";
  if (m.latent)
    latentAttention(kind);
  else if (m.residual == Residual::Sequential)
    attention(kind, window);
  else {
    // Both parts read x, so the MLP's input comes before the sum.
    if (m.residual == Residual::Parallel) {
      declareNorm("gmlp", "bmlp");
      norm("m", "x", "gmlp", "bmlp");
    }
    attention(kind, window);
  }
  line("");
  kind.hasExperts ? experts() : denseMlp();
}

/// Layers of one attention have one name, whatever their window.
std::string Writer::attendName(const LayerKind &kind) const {
  std::vector<double> bases;
  for (const LayerKind &each : m.layers)
    if (hasRing(each) == hasRing(kind) && !is_contained(bases, each.theta))
      bases.push_back(each.theta);
  std::string name = hasRing(kind) ? "near" : "attend";
  if (bases.size() == 1)
    return name;
  name += theta(kind.theta);
  for (char &c : name)
    c = isAlnum(c) ? c : '_';
  return name;
}

std::string Writer::call(const LayerKind &kind, StringRef argument) const {
  std::string text =
      attendName(kind) + "(" + argument.str() + (caches ? ", pos" : "");
  if (hasRing(kind))
    text += ", slot, kp";
  if (namesWindows())
    text += ", w=" + (kind.window ? std::to_string(*kind.window) : "none");
  return std::string(kind.hasExperts ? "experts(" : "mlp(") + text + "))";
}

//===----------------------------------------------------------------------===//
// An encoder and a decoder
//===----------------------------------------------------------------------===//

/// The bucket of each pair of positions, as in Raffel et al. 2020: half of them
/// for small distances, the others by the logarithm; where all positions are
/// read, half for keys behind the query. And the bias of each head.
void Writer::writeBuckets() {
  int64_t buckets = m.relativeBias->buckets / (isCausal ? 1 : 2);
  int64_t exact = buckets / 2;
  std::string list = "[" + sequence + ", " + context + "]";
  std::string query = "iota[" + sequence + "]", key = "iota[" + context + "]";
  std::string table = isCausal ? "Wnear" : "Wrel";
  if (isCausal)
    line("away" + list + " = maximum(" + query + " - " + key + ", 0)");
  else
    line("away" + list + " = abs(" + query + " - " + key + ")");
  double growth = double(buckets - exact) /
                  std::log(double(m.relativeBias->farthest) / double(exact));
  line("// A cast rounds to the nearest; half less rounds down.");
  line("far" + list + " = int32(" + real(double(exact)) +
       " + log(maximum(f32(away), 1.0) / " + real(double(exact)) + ") * " +
       real(growth) + " - 0.499999)");
  line("bucket" + list + " = where(away < " + Twine(exact) +
       ", away, minimum(far, " + Twine(buckets - 1) + "))");
  if (!isCausal)
    line("bucket" + list + " = bucket + where(" + key + " > " + query + ", " +
         Twine(buckets) + ", 0)");
  line("bias[N, " + sequence + ", " + context + "] = " + table + "[bucket" +
       list + ", N]");
}

/// Attention of the decoder to what the encoder made.
void Writer::crossAttention() {
  declareNorm("gcross", "bcross");
  for (StringRef name : {"Cq", "Ck", "Cv"})
    weight(name, {"D", "N", "H"});
  weight("Co", {"N", "H", "D"});
  norm("c", "x", "gcross", "bcross");
  line("cq[" + bt + ", N, H] = c[" + bt + ", D] * Cq[D, N, H]");
  line("ck[B, S, N, H] = mem[B, S, D] * Ck[D, N, H]");
  line("cv[B, S, N, H] = mem[B, S, D] * Cv[D, N, H]");
  line("co[" + bt + ", N, H] = attention[H, S](cq, ck, cv, scale=" +
       real(*m.scoreScale) + ")");
  addTo("co[" + bt + ", N, H] * Co[N, H, D]", "cross");
}

/// Layers over the source, and their result as the decoder reads it.
void Writer::writeEncoder() {
  isCausal = false;
  line("// The encoder: tokens of the source see each other.");
  writeBuckets();
  line("x: " + m.type + "[" + bt + ", D] = Wemb[tokens[" + bt + "], D]");
  line("repeat L1 {");
  indent = "  ";
  multiplicity = m.encoderLayers;
  attention({}, "");
  line("");
  denseMlp();
  indent = "";
  multiplicity = 1;
  line("}");
  norm("mem", "x", "gmem", "bmem");
  line("");
}

/// Layers over the target, whose tokens see those in front and the source.
void Writer::writeDecoder() {
  sequence = "Tt", context = "St";
  bt = "B, Tt", bs = "B, St";
  isCausal = true;
  line("// The decoder: tokens of the target see those in front of them, and "
       "the source.");
  writeBuckets();
  line("x: " + m.type + "[" + bt + ", D] = Wemb[targets[" + bt + "], D]");
  line("repeat L {");
  indent = "  ";
  multiplicity = m.layers.size();
  attention(m.layers.front(), "");
  line("");
  crossAttention();
  line("");
  denseMlp();
  indent = "";
  multiplicity = 1;
  line("}");
}

/// The parts that the runs call.
void Writer::writeParts() {
  bool windows = namesWindows();
  std::string parameter = "x: " + m.type + "[" + bt + ", D]";
  std::vector<LayerKind> written;
  for (const LayerKind &kind : m.layers) {
    auto isSame = [&](const LayerKind &k) { return sameAttention(k, kind); };
    if (any_of(written, isSame))
      continue;
    written.push_back(kind);
    multiplicity = countOf(isSame);
    if (windows)
      line("// Attention to the last w positions, or to all.");
    else if (hasRing(kind))
      line("// Attention to the last W positions, which are all that the cache "
           "has.");
    line("layer " + attendName(kind) + "(" + parameter +
         (caches ? ", pos: int32[" + bt + "]" : "") +
         (hasRing(kind) ? ", slot: int32[" + bt + "], kp: int32[B, W]" : "") +
         (windows ? ", w: dim" : "") + ") -> (x) {");
    indent = "  ";
    if (!caches)
      line("dim S = T                         // the positions that a token "
           "attends to");
    m.latent ? latentAttention(kind)
             : attention(kind, windows         ? "w"
                               : hasRing(kind) ? "W"
                                               : "");
    indent = "";
    line("}");
    line("");
  }
  for (bool sparse : {false, true}) {
    multiplicity =
        countOf([&](const LayerKind &k) { return k.hasExperts == sparse; });
    if (!multiplicity)
      continue;
    line(Twine("layer ") + (sparse ? "experts(" : "mlp(") + parameter +
         ") -> (x) {");
    indent = "  ";
    sparse ? experts() : denseMlp();
    indent = "";
    line("}");
    line("");
  }
  multiplicity = 1;
}

void Writer::writeRuns() {
  bool single = runs.size() == 1 && runs[0].kinds.size() == 1;
  for (auto [i, run] : enumerate(runs)) {
    line("repeat " + runDim(i) + " {");
    indent = "  ";
    if (single) {
      multiplicity = run.count;
      writeInline(run.kinds[0]);
      multiplicity = 1;
    } else {
      std::string value = "x";
      for (auto [j, kind] : enumerate(run.kinds)) {
        std::string next =
            j + 1 == run.kinds.size() ? "x" : "x" + std::to_string(j + 1);
        line(next + " = " + call(kind, value));
        value = next;
      }
    }
    indent = "";
    line("}");
  }
}

/// Groups of so many tokens, a power of two: the most in which each expert has
/// `load` tokens on average, where there are so many. `--verify` makes an
/// extent of several slots larger, never one of 1.
static int64_t groupsOf(int64_t tokens, const Experts &experts, int64_t load) {
  int64_t least = divideCeil(load * experts.count, experts.picks);
  int64_t groups = 1;
  while (tokens % (2 * groups) == 0 && tokens / (2 * groups) >= least)
    groups *= 2;
  return groups;
}

void Writer::writeDims() {
  auto say = [&](const Twine &text, const Twine &why) {
    std::string left = ("dim " + text).str();
    left.resize(std::max<size_t>(left.size() + 2, 34), ' ');
    line(left + "// " + why);
  };
  auto item = [&](StringRef name, int64_t extent) {
    dim(name, extent);
    return (name + " = " + digits(extent)).str();
  };
  if (m.image) {
    const Image &image = *m.image;
    int64_t side = image.size / image.patch;
    say(item("B", options.batch), "images");
    say(item("Ch", image.channels) + ", " + item("Y", side) + ", " +
            item("X", side) + ", " + item("I", image.patch) + ", " +
            item("J", image.patch),
        "channels, rows and columns of patches, pixels of each");
    say("Yall = Y * I, Xall = X * J", "pixels of an image");
    say("P = Y * X, One = 1, T = P + One", "patches, and the class token");
    dim("T", image.tokens());
    say("S = T", "the positions that a token attends to");
    say(item("C", m.classes), "classes");
  } else if (serves) {
    say(item("B", options.batch), "sequences that decode together");
    say(item("T", 1), "tokens of a sequence: the prompt in prefill");
    say(item("S", *options.sequence), "the length of the cache");
  } else if (caches) {
    say(item("B", options.batch), "sequences, one token of each");
    say(item("S", *options.sequence), "the length of the cache");
  } else {
    say(item("B", options.batch) + ", " + item("T", *options.sequence),
        "sequences, tokens of each");
    say("S = T", "the positions that a token attends to");
    if (isEncoderDecoder()) {
      say("Tt = T, St = T", "the same of the target");
      dim("Tt", *options.sequence);
    }
  }
  if (hasRings())
    say(item("W",
             *find_if(m.layers, [&](const LayerKind &k) { return hasRing(k); })
                  ->window),
        "positions that a layer with a window sees, and caches");
  if (m.vocabulary)
    say(item("V", m.vocabulary), "vocabulary");
  std::string counts;
  for (size_t i = 0; i < runs.size(); ++i)
    counts += (i ? ", " : "") + item(runDim(i), runs[i].count);
  bool single = runs.size() == 1 && runs[0].kinds.size() == 1;
  if (isEncoderDecoder()) {
    say(item("L1", m.encoderLayers) + ", " + counts,
        "layers of the encoder, of the decoder");
    say(item("Buckets", m.relativeBias->buckets), "of distances");
  } else
    say(counts, single ? "layers" : "repetitions of the layers' pattern");
  say(item("D", m.width), "width");
  bool dense =
      any_of(m.layers, [](const LayerKind &k) { return !k.hasExperts; });
  if (dense)
    say(item(m.experts ? "F1" : "F", m.hidden), "hidden width of the MLP");
  if (m.latent) {
    const Latent &l = *m.latent;
    std::string ranks = item("R", l.rank);
    if (l.queryRank)
      ranks = item("Rq", *l.queryRank) + ", " + ranks;
    say(item("N", m.heads), "heads");
    say(ranks, l.queryRank ? "ranks of queries, of keys and values"
                           : "rank of keys and values");
    say(item("A1", l.plain) + ", " + item("A2", l.rotary),
        "of a head: without a position, with one");
    say(item("U", l.value), "of a head: for values");
    if (caches)
      say("A = R + A2", "what the cache has for a token");
    else
      say("A = A1 + A2", "of a head: for scores");
  } else {
    std::string heads;
    std::string why;
    if (m.keyHeads == m.heads) {
      heads = item("N", m.heads);
      why = "heads";
    } else if (m.keyHeads == 1) {
      heads = item("N", m.heads);
      why = "query heads, for one of keys and values";
    } else {
      heads = item("K", m.keyHeads) + ", " + item("G", m.heads / m.keyHeads);
      why = formatv("{0} key-value heads, each for {1} query heads", m.keyHeads,
                    m.heads / m.keyHeads);
    }
    say(heads + ", " + item("H", m.headSize), why);
    if (m.rotary && m.rotary != m.headSize)
      say(item("R", m.rotary) + ", " + item("U", m.headSize - m.rotary),
          "elements of a head that rotate, and the others");
  }
  if (m.positions)
    say(item("Tmax", m.positions), "positions that were learned");
  if (m.tokenTypes)
    say(item("Types", m.tokenTypes), "segments of a text");
  if (m.architecture == Architecture::TextEncoder) {
    say("D2 = D", "width behind the pooler");
    dim("D2", m.width);
    if (options.task == Task::Train)
      say(item("R", 2), "the second text follows, or does not");
  }
  if (!m.experts)
    return;
  const Experts &e = *m.experts;
  say(item("E", e.count) + ", " + item("F", e.hidden),
      "experts, hidden width of each");
  if (m.expertBlock) {
    dim("Dz", m.width / m.expertBlock);
    dim("Fz", e.hidden / m.expertBlock);
    say(item("Z", m.expertBlock) + ", Dz = D / Z, Fz = F / Z",
        "weights of an expert that have one scale, blocks of them");
  }
  if (e.shared)
    say(item("Fs", e.shared), "hidden width of the experts of all tokens");
  if (e.groups > 1)
    say(item("Q", e.groups) + ", M = E / Q", "blocks of experts");
  std::string tokens = "T", apart = "groups of tokens, dispatched apart";
  if (caches) {
    std::string groups = digits(groupsOf(options.batch, e, /*load=*/2));
    say("P = " + (serves ? "min(B, " + groups + ")" : groups) + ", J = B / P",
        apart);
    tokens = "J";
  }
  if (serves) {
    // Whole slots for the mean load are an eighth too many at most.
    say("P2 = min(T, " + digits(groupsOf(prompt(), e, /*load=*/8)) +
            "), J2 = T / P2",
        "and within a prompt");
    tokens = "J * J2";
  }
  say("C = ceildiv(" + Twine(e.picks) + " * " + tokens + ", E)",
      "slots of an expert for a group, of which a token takes " +
          Twine(e.picks));
}

static StringRef taskTitle(Task task, Architecture architecture) {
  bool isText = architecture == Architecture::TextEncoder;
  switch (task) {
  case Task::Forward:
    return isText ? "one forward pass" : "one forward pass and its loss";
  case Task::Train:
    return isText ? "a training step on masked words and following texts"
                  : "a training step";
  case Task::Decode:
    return "decoding, the next token of each sequence";
  case Task::Serve:
    return "serving, prefill and decoding";
  }
  llvm_unreachable("a task");
}

/// The first token's value through a tanh; in training, the words at all
/// positions and whether the second text follows.
void Writer::writePooler() {
  line("pooled[B, D2] = tanh(x[B, 0, D] * Wpool[D, D2] + bpool[D2])");
  if (options.task != Task::Train) {
    line("output x");
    line("output pooled");
    return;
  }
  line("u[B, T, D2] = layernorm[D2](" + m.activation +
       "(x[B, T, D] * Wword[D, D2] + bword[D2]), gword, bgword, eps=" +
       real(m.eps) + ")");
  line("logits[B, T, V] = u[B, T, D2] * Wemb[V, D2] + bvocab[V]");
  line("pair[B, R] = pooled[B, D2] * Wpair[D2, R] + bpair[R]");
  line("loss[] = mean[B, T](cross_entropy[V](logits, labels)) + "
       "mean[B](cross_entropy[R](pair, follows))");
  line("train { loss = loss }");
}

/// The class of an image, from its first token.
void Writer::writeClasses() {
  line("y[B, D] = " + normalised("x[B, 0, D]", "D", "gout", "bout"));
  line("logits[B, C] = y[B, D] * Wout[D, C] + bclass[C]");
  line("loss[] = mean[B](cross_entropy[C](logits, labels))");
  line(options.task == Task::Train ? "train { loss = loss }" : "output loss");
}

/// Logits, and the loss or the next token of each sequence.
void Writer::writeHead() {
  std::string tokens = caches ? "B" : bt;
  if (serves)
    line("last[B, D] = x[B, T - 1, D]       // only the last position has a "
         "next token");
  line("y[" + tokens +
       ", D] = " + normalised(serves ? "last" : "x", "D", "gout", "bout"));
  std::string logits = m.logitCap || m.logitDivisor != 1 ? "s" : "logits";
  line(logits + "[" + tokens + ", V] = y[" + tokens + ", D] * " +
       (m.tied ? "Wemb[V, D]" : "Wout[D, V]"));
  if (m.logitDivisor != 1)
    line("logits = s / " + real(m.logitDivisor));
  if (m.logitCap)
    line("logits = " + real(*m.logitCap) + " * tanh(s / " + real(*m.logitCap) +
         ")");
  if (caches) {
    line("next[B] = argmax[V](logits)");
    line("output next");
  } else {
    line("loss[] = mean[" + bt + "](cross_entropy[V](logits, labels))");
    line(options.task == Task::Train ? "train { loss = loss }" : "output loss");
  }
  if (!serves)
    return;
  line("");
  line("serve { batch = B  sequence = T  context = S  position = pos");
  line("        prompt = " + digits(prompt()) +
       "  generate = " + digits(generated()) + " }");
}

/// Inputs, and the weights outside of layers.
void Writer::writeInputs() {
  bool isDecoder = !isEncoder(), trains = options.task == Task::Train;
  line("input tokens: int32[" + bt + "]");
  if (caches)
    line("input pos:    int32[" + bt + "]" + (serves ? "" : "   ") +
         "        // where in its sequence each token stands");
  if (m.tokenTypes)
    line("input types:  int32[B, T]        // the segment of each token");
  if (isEncoderDecoder()) {
    line("input targets: int32[B, Tt]       // the token in front of each "
         "label");
    line("input labels: int32[B, Tt]");
  } else if (isDecoder ? !caches : trains) {
    line("input labels: int32[B, T]");
  }
  if (!isDecoder && trains)
    line("input follows: int32[B]");
  weight("Wemb", {"V", "D"});
  if (m.positions)
    weight("Wpos", {"Tmax", "D"});
  if (m.embeddingNorm)
    declareNorm("gemb", "bemb");
  if (isDecoder) {
    declareNorm("gout", "bout");
    if (!m.tied)
      weight("Wout", {"D", "V"});
    if (isEncoderDecoder()) {
      declareNorm("gmem", "bmem");
      weight("Wrel", {"Buckets", "N"});
      weight("Wnear", {"Buckets", "N"});
    }
    return;
  }
  weight("Wtype", {"Types", "D"});
  declareNorm("gemb", "bemb");
  weight("Wpool", {"D", "D2"});
  weight("bpool", {"D2"});
  if (!trains)
    return;
  weight("Wword", {"D", "D2"});
  for (StringRef name : {"bword", "gword", "bgword"})
    weight(name, {"D2"});
  weight("bvocab", {"V"});
  weight("Wpair", {"D2", "R"});
  weight("bpair", {"R"});
}

void Writer::writeImageInputs() {
  line("input images: " + m.type + "[B, Ch, Yall, Xall]");
  line("input labels: int32[B]");
  weight("Wpatch", {"Ch", "I", "J", "D"});
  weight("bpatch", {"D"});
  weight("cls", {"D"});
  weight("Wpos", {"T", "D"});
  declareNorm("gout", "bout");
  weight("Wout", {"D", "C"});
  weight("bclass", {"C"});
}

void Writer::writeEmbedding() {
  std::string scale = m.scaleEmbeddingBySqrt  ? " * sqrt(size[D])"
                      : m.embeddingScale != 1 ? " * " + real(m.embeddingScale)
                                              : "";
  std::string learned;
  if (m.positions)
    learned = " + Wpos[" + (caches ? position() : "iota[T]") + ", D]";
  std::string sum = "Wemb[tokens[" + bt + "], D]" + scale + learned;
  if (hasRings())
    writeSlots();
  if (m.alibiMost)
    writeSlopes();
  if (m.embeddingNorm)
    norm("x", sum, "gemb", "bemb");
  else if (m.tokenTypes)
    norm("x", sum + " + Wtype[types[B, T], D]", "gemb", "bemb");
  else
    line("x: " + m.type + "[" + bt + ", D] = " + sum);
}

/// Where a token's key goes in the ring buffer of a layer with a window, and
/// the position of the key in each slot: the last one that leaves the slot's
/// rest.
void Writer::writeSlots() {
  line("// A cache of W slots has position p in slot p % W.");
  line("slot[" + bt + "] = " + position() + " % W");
  std::string now = position();
  if (serves) {
    line("now[B] = pos[B, T - 1]");
    now = "now[B]";
  }
  line("kp[B, W] = " + now + " - (" + now + " - iota[W]) % W");
}

/// The slopes of Press et al. 2022: of a power of two of heads 2^-(most i / n),
/// i = 1 .. n; of more heads those of the next smaller power, then every second
/// one of the next larger.
void Writer::writeSlopes() {
  int64_t whole = llvm::bit_floor(uint64_t(m.heads));
  std::string step = real(*m.alibiMost * std::log(2.0) / double(whole));
  std::string half = real(*m.alibiMost * std::log(2.0) / double(2 * whole));
  std::string heads = queryHeads, number = "f32(iota[N])";
  if (queryHeads != "N")
    number = "f32(iota[K]) * " + real(double(m.heads / m.keyHeads)) +
             " + f32(iota[G])";
  line(
      "// ALiBi: a score falls by a head's slope for each position between key "
      "and query.");
  line("// Softmax is unchanged by what all keys of a query have, so the key's "
       "position is enough.");
  line("head[" + heads + "] = " + number);
  std::string power = "-" + step + " * (head + 1.0)";
  if (whole != m.heads) {
    std::string limit = real(double(whole));
    power = "where(head < " + limit + ", " + power + ", -" + half +
            " * (2.0 * head - " + real(double(2 * whole - 1)) + "))";
  }
  std::string scale = m.alibiScale == 1 ? "" : real(m.alibiScale) + " * ";
  line("slope[" + heads + "] = " + scale + "exp(" + power + ")");
  line("bias[" + heads + ", S] = slope[" + heads + "] * f32(iota[S])");
}

/// A token for each patch, and one in front of them for the class.
void Writer::writePatches() {
  line("rows[B, Ch, Y, I, Xall] = split[Yall -> (Y, I)](images)");
  line("tiles[B, Ch, Y, I, X, J] = split[Xall -> (X, J)](rows)");
  line("grid[B, Y, X, D] = tiles[B, Ch, Y, I, X, J] * Wpatch[Ch, I, J, D] + "
       "bpatch[D]");
  line("patches[B, P, D] = merge[(Y, X) -> P](grid)");
  line("first[B, One, D] = cls[D]");
  line("z[B, T, D] = concat[(One, P) -> T](first, patches)");
  line("x[B, T, D] = z[B, T, D] + Wpos[T, D]");
}

std::optional<std::string> Writer::write() {
  bt = caches && !serves ? "B" : "B, T";
  bs = caches ? bt : "B, S";
  isCausal = !isEncoder();
  queryHeads =
      m.latent || m.keyHeads == m.heads || m.keyHeads == 1 ? "N" : "K, G";
  keyHeads = m.keyHeads == m.heads ? "N" : m.keyHeads == 1 ? "" : "K";
  findRuns();
  writeDims();
  line("");
  isImage() ? writeImageInputs() : writeInputs();
  line("");
  if (runs.size() > 1 || runs[0].kinds.size() > 1)
    writeParts();
  if (isEncoderDecoder()) {
    writeEncoder();
    writeDecoder();
  } else {
    isImage() ? writePatches() : writeEmbedding();
    writeRuns();
  }
  switch (m.architecture) {
  case Architecture::Decoder:
  case Architecture::EncoderDecoder:
    writeHead();
    break;
  case Architecture::TextEncoder:
    writePooler();
    break;
  case Architecture::ImageEncoder:
    writeClasses();
    break;
  }
  std::string head =
      "// " + printable(m.name.empty() ? options.file : m.name, 80) + " (" +
      m.family + "): " + taskTitle(options.task, m.architecture).str() + ".\n";
  if (parameters > uint64_t(INT64_MAX))
    return std::nullopt;
  std::string count = std::to_string(parameters);
  for (size_t at = count.size(); at > 3;) {
    at -= 3;
    count.insert(at, ",");
  }
  head += "// " + count + " parameters.\n";
  for (const std::string &note : m.notes)
    head += "// " + note + "\n";
  if (!options.hardware.empty())
    head += "hardware " + options.hardware + "\n";
  return head + "\n" + body;
}

std::optional<std::string> writeProgram(const Model &model,
                                        const ImportOptions &options) {
  return Writer(model, options).write();
}

} // namespace shardc::import
