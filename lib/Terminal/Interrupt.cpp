//===- Interrupt.cpp - Ctrl-C ends a search, not the program --------------===//

#include "shardc/Terminal/Interrupt.h"
#include <csignal>

using namespace shardc;

static std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may only use what needs no lock");

static void interrupt(int signal) {
  if (!interrupted.exchange(true))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

const std::atomic<bool> &shardc::catchInterrupts() {
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  return interrupted;
}
