//===- Interrupt.h - Ctrl-C ends a search, not the program ----*- C++ -*-===//

#ifndef SHARDC_TERMINAL_INTERRUPT_H
#define SHARDC_TERMINAL_INTERRUPT_H

#include <atomic>

namespace shardc {

/// From now on the first SIGINT or SIGTERM sets the flag that is returned; the
/// next one ends the program as it would have without.
const std::atomic<bool> &catchInterrupts();

} // namespace shardc

#endif // SHARDC_TERMINAL_INTERRUPT_H
