//===- Tasks.h - Independent pieces of work on some threads ---*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_TASKS_H
#define SHARDC_SOLVER_SEARCH_TASKS_H

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace shardc::solver::search {

/// Runs all tasks, in order where there is one thread, and waits for them.
inline void runTasks(const std::vector<std::function<void()>> &tasks,
                     unsigned jobs) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t k; (k = next++) < tasks.size();)
      tasks[k]();
  };
  std::vector<std::thread> threads;
  for (size_t k = 1; k < std::min<size_t>(jobs, tasks.size()); ++k)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_TASKS_H
