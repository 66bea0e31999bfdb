//===- Model.h - A transformer as its building blocks ---------*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_MODEL_H
#define SHARDC_LIB_IMPORT_MODEL_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc::import {

enum class NormKind {
  Rms,
  /// RMSNorm by 1 + weight.
  RmsPlusOne,
  Layer,
  /// A LayerNorm without bias.
  LayerScale
};
enum class QkNorm { None, Head, AllHeads };
/// Where a layer normalises: in front of its parts, behind them, or both, or
/// the sum with what they add to.
enum class NormPlace { Before, After, Both, AfterSum };
/// Encoders attend to all positions and make no next token.
enum class Architecture { Decoder, TextEncoder, ImageEncoder, EncoderDecoder };
enum class Residual {
  Sequential,
  /// Attention and MLP read the same input, each with a norm.
  Parallel,
  /// The same with one norm for both.
  ParallelOneNorm
};

/// Multi-head latent attention.
struct Latent {
  std::optional<int64_t> queryRank;
  int64_t rank, plain, rotary, value;
};

/// Biases of scores that a head learns for each distance of query and key, in
/// buckets: half of them for one distance each, up to `farthest`.
struct RelativeBias {
  int64_t buckets, farthest;
};

/// Images that are cut into square patches.
struct Image {
  int64_t size, patch, channels;

  /// Patches, and a token that stands for the class.
  int64_t tokens() const { return (size / patch) * (size / patch) + 1; }
};

struct Experts {
  int64_t count, picks, hidden;
  /// Hidden width of the experts that every token uses; 0: none.
  int64_t shared = 0;
  /// A sigmoid scales the shared experts.
  bool sharedGate = false;
  bool sigmoid = false;
  /// A bias chooses and does not weigh.
  bool choosingBias = false;
  bool normalise = true;
  /// The picked experts' scores are the softmax of theirs alone.
  bool softmaxOfPicked = false;
  /// The router and the matrices have biases.
  bool biases = false;
  /// SwiGLU of clamped halves, with 1 added to the linear one.
  std::optional<double> clamp;
  double scale = 1;
  /// Picks lie in at most `groupLimit` of `groups` blocks.
  int64_t groups = 1, groupLimit = 1;
};

/// How one layer differs from the others.
struct LayerKind {
  std::optional<int64_t> window;
  double theta = 10000;
  bool hasExperts = false;
  bool operator==(const LayerKind &) const = default;
};

struct Model {
  std::string family, name;
  Architecture architecture = Architecture::Decoder;
  /// Element types of activations, of matrices, and of those of experts.
  std::string type = "bf16", matrixType = "bf16", expertType = "bf16";
  /// Elements of experts' matrices along the summed index that have one scale;
  /// 0: they have none.
  int64_t expertBlock = 0;
  int64_t width = 1, hidden = 1;
  /// 0: tokens are no words.
  int64_t vocabulary = 0;
  int64_t heads, keyHeads, headSize;
  std::vector<LayerKind> layers;
  NormKind norm = NormKind::Rms;
  NormPlace normPlace = NormPlace::Before;
  Residual residual = Residual::Sequential;
  double eps = 1e-6;
  QkNorm qkNorm = QkNorm::None;
  bool qkvBias = false, outBias = false, mlpBias = false, gated = true;
  std::string activation = "silu";
  /// Elements of a head that rotate; 0: positions are learned.
  int64_t rotary = 0;
  /// Rows of the table of learned positions, and the key that says so.
  int64_t positions = 0;
  std::string positionsKey;
  /// Rows of the table of segments; 0: none.
  int64_t tokenTypes = 0;
  /// A learned score of each head for no key at all.
  bool sinks = false;
  /// ALiBi: of the slopes 2^-(most / heads), ...; and what they are scaled by.
  std::optional<double> alibiMost;
  double alibiScale = 1;
  std::optional<RelativeBias> relativeBias;
  /// Layers of the encoder in front of a decoder.
  int64_t encoderLayers = 0;
  /// The embedding is normalised.
  bool embeddingNorm = false;
  std::optional<Image> image;
  /// Classes of an image.
  int64_t classes = 0;
  bool tied = false;
  std::optional<double> scoreScale, scoreCap, logitCap;
  bool scaleEmbeddingBySqrt = false;
  double embeddingScale = 1, residualScale = 1, logitDivisor = 1;
  std::optional<Latent> latent;
  std::optional<Experts> experts;
  /// Said in the program's head.
  std::vector<std::string> notes;
};

} // namespace shardc::import

#endif // SHARDC_LIB_IMPORT_MODEL_H
