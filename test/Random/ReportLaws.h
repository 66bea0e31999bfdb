//===- ReportLaws.h - What holds of every report --------------*- C++ -*-===//

#ifndef SHARDC_TEST_RANDOM_REPORTLAWS_H
#define SHARDC_TEST_RANDOM_REPORTLAWS_H

#include "shardc/Report/Report.h"

namespace shardc::test {

/// Totals are the sums of their items, bounds of a step's time are in order,
/// and no more work is useful than is done
/// (docs/CostModel.md#5-the-time-of-a-step). Names the first law that does not
/// hold, with both figures; empty if all hold.
std::string brokenLaw(const Report &report);

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_REPORTLAWS_H
