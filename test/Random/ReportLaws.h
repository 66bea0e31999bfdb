//===- ReportLaws.h - What holds of every report --------------*- C++ -*-===//

#ifndef SHARDC_TEST_RANDOM_REPORTLAWS_H
#define SHARDC_TEST_RANDOM_REPORTLAWS_H

#include "shardc/Report/Report.h"

namespace shardc::test {

/// Totals are the sums of their items, bounds of a step's time are in order,
/// and no more work is useful than is done (cost-model.md). Names what is not
/// so, with both figures; empty if all holds.
std::string brokenLaw(const Report &report);

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_REPORTLAWS_H
