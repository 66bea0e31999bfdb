//===- Seconds.h - Picoseconds and the seconds of reports -----*- C++ -*-===//
//
// Reports hold whole picoseconds, in seconds, so that both ways are exact.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_SECONDS_H
#define SHARDC_REPORT_SECONDS_H

#include "shardc/Cost/Collective.h"
#include <cmath>

namespace shardc {

inline double toSeconds(Picoseconds time) { return double(time) / 1e12; }

/// For seconds of a report, however long; toPicoseconds is for prices.
inline Picoseconds wholePicoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}

} // namespace shardc

#endif // SHARDC_REPORT_SECONDS_H
