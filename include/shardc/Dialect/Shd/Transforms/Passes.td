//===- Passes.td - Passes over the shd dialect ------------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_TD
#define SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ShdPropagate : Pass<"shd-propagate", "::shardc::shd::ProgramOp"> {
  let summary = "Spreads annotated shardings over the program";
  let description = [{
    Sharding flows along the factors of each operation's sharding rule, from
    pinned tensors to those that nothing is said of, in program order and
    against it, until nothing changes. It never moves what is pinned, never
    uses an axis twice in one tensor, and makes no partial sums. What nothing
    reaches stays open. Searches nothing and knows no costs.

    Safe at any time before `shd-optimize`.
  }];
}

def ShdReplicateOpen : Pass<"shd-replicate-open", "::shardc::shd::ProgramOp"> {
  let summary = "Closes open pins: what nothing is said of is replicated";
  let description = [{
    Gives every named value (inputs, weights, states, carried values, results of
    statements) a closed pin, replicated where nothing is said. A carried value
    has one sharding: what is said of its rebinding, else of its initial value.
    Intermediate results inside a statement stay open.

    This is the meaning of `--opt=none`.
  }];
}

def ShdDifferentiate : Pass<"shd-differentiate", "::shardc::shd::ProgramOp"> {
  let summary = "Appends the backward pass: the gradient of every trained weight";
  let description = [{
    Reverse-mode differentiation of the loss with respect to the weights that are
    not frozen, by the operations' `GradientOpInterface`; a program without
    `training` stays as it is. A value that several operations read sums their
    gradients. Gradients of activations have the element type of the activation,
    gradients of weights the type `gradients`, and each of these ends in a buffer
    of kind `gradient`. A repeat becomes a repeat in reverse; what its iterations
    read of the forward pass is saved in buffers or recomputed, as `save` and
    `remat` say (`auto`: results of einsums, attention and gathers are saved). With
    `every(k)` repeats are cut into segments of k iterations (`shd.segments`): what
    a segment begins with is saved, and the backward pass runs its iterations again
    before it differentiates them.

    A loss with `chunks` and the products that make its operand are differentiated
    in a repeat over the chunks of the labels, in which the products run again. The
    index that is cut splits with the chunk minor, `T -> (T', T.chunk)`. Gradients
    of values with that index are written chunk by chunk, others are added up.

    Run it after the import. Emits an error where the loss is no scalar, depends
    on no trained weight, or an operation on the way has no derivative.
  }];
}

def ShdStage : Pass<"shd-stage", "::shardc::shd::ProgramOp"> {
  let summary = "Makes the program of one pipeline stage";
  let description = [{
    Of a program with a `pipeline`: the repeat over its index runs as many layers
    as a stage holds at most, L / p rounded up for p stages, and what is stacked
    along it has as many parts. What stands before and behind the repeat stays:
    it belongs to the first and to the last stage.

    Run it before `shd-differentiate`. Emits an error where there are fewer layers
    than stages, or a layer reads its number.
  }];
}

def ShdMicrobatch : Pass<"shd-microbatch", "::shardc::shd::ProgramOp"> {
  let summary = "Runs forward and backward pass once for each part of the batch";
  let description = [{
    With `microbatches = m` above 1, puts the program into a repeat of m
    iterations, each with 1/m of the batch, and adds up the loss and the
    gradients, whose buffers are read m times and written m times. The batch
    splits with the microbatch minor, so that its sharding needs no
    communication where m divides each device's part.

    A pipeline has the repeat for a single microbatch, too, and marks what is
    saved with the number of microbatches that are in flight (`shd.in_flight`).
    One without `training` splits its batch into as many as `shd.microbatches`
    says: outputs that have the batch become states with a part for each
    microbatch, as do states that have it, and other outputs are added up.

    Run it after `shd-differentiate`. Emits an error where the batch is not
    parallel until sums or means remove it, the loss is not linear in these, or m
    does not divide the batch.
  }];
}

def ShdAddOptimizer : Pass<"shd-add-optimizer", "::shardc::shd::ProgramOp"> {
  let summary = "Appends the optimizer's update of every weight with a gradient";
  let description = [{
    Declares moments and master copies as `training` says and appends, for each
    weight, the elementwise operations that read gradient, moments and master
    copy (or weight) and write them and the weight. Weights that are stacked
    along the same repeats are updated in one repeat. With `clip`, gradients are
    scaled so that their global norm is at most that.

    Run it after `shd-differentiate` and `shd-microbatch`.
  }];
}

def ShdPlace : Pass<"shd-place", "::shardc::shd::ProgramOp"> {
  let summary = "Pins the operations of a step as the program's layouts say";
  let description = [{
    Of a program with `shd.layouts`: each record names an operation of the step,
    and says how its results are made and stored and how it reads its operands;
    these become pins. The records stay, since those of copies are for
    `shd-optimize`, which inserts them where layouts are fixed.

    Run it after `shd-add-optimizer`. Emits an error where a record names no
    operation, or does not fit the one that it names.
  }];
}

def ShdServe : Pass<"shd-serve", "::shardc::shd::ProgramOp"> {
  let summary = "Makes prefill or a decode step of a program that serves";
  let description = [{
    Of a program with `shd.serving` and `shd.serving_phase`, whose extents are
    those of the phase.

    `prefill`: every sequence begins at position 0, so the input of positions
    goes. `rope` and causal attention that it places take their own index of
    queries instead, and a scatter at these positions that fills its destination
    is its update; whatever else reads positions gets an `iota`.

    `decode`: attention over the cache gets `shd.filled_keys`, the share of its
    key positions that hold tokens on average over the generated ones; so do
    elementwise operations that make its keys and values of the cache.

    Run it after the import; a program without a phase stays as it is. Emits an
    error where the phase is given without `shd.serving`.
  }];
}

def ShdFusionGroups : Pass<"shd-fusion-groups", "::shardc::shd::ProgramOp"> {
  let summary = "Decides which operations fuse";
  let description = [{
    Fusion is fixed by the program, in its order: an elementwise operation, cast,
    reduction or normalisation joins the group of its latest-produced operand if
    its indices are that group's or a subset of them; else it starts one. An
    einsum, attention, gather or scatter always starts one. Pins that make two
    operations disagree about an index keep them apart, and so does a repeat
    between them that reads the group's results.

    Writes `shd.group`. Run it after pins are final and before `shd-optimize`.
  }];
}

def ShdOrderIndices : Pass<"shd-order-indices", "::shardc::shd::ProgramOp"> {
  let summary = "Stores positions in zigzag order where that balances attention";
  let description = [{
    Joins the dimensions that hold the same positions to classes, and marks with
    `shd.dealt` those along which causal attention runs, dealt to as many parts
    as any plan needs; a price does not depend on how many these are. A class
    along which something depends on the order of storage stays contiguous, and
    the program's `shd.order_classes` names the obstacle. `shd.orders` fixes the
    order of an index: emits an error where zigzag is asked for and cannot be.

    Run it before `shd-optimize`, when the mesh is known.
  }];
}

def ShdApplyOrder : Pass<"shd-apply-order", "::shardc::shd::ProgramOp"> {
  let summary = "Puts operations into the order that the plan has chosen";
  let description = [{
    Moves the operations of each block into the order of `shd.work_order`, which
    `shd-optimize` leaves on the program: the numbers of all operations but
    copies, as they stand before, in the order in which they are to run. A copy
    stands before the first operation that reads it or what it copies. Without the attribute nothing moves. Run it
    once, before `shd-insert-collectives`. Emits an error where the attribute is
    no such order.
  }];
}

def ShdSettleOrders : Pass<"shd-settle-orders", "::shardc::shd::ProgramOp"> {
  let summary = "Deals indices to as many parts as the plan has";
  let description = [{
    Reduces the parts of `shd.dealt` to those that the plan's sharding of causal
    attention needs, and drops the mark where it needs none. Run it after
    `shd-insert-collectives`.
  }];
}

def ShdCanonicalOrder
    : Pass<"shd-canonical-order", "::shardc::shd::ProgramOp"> {
  let summary = "Puts independent statements into an order that no text decides";
  let description = [{
    Moves the operations of each block: depth first from those that nothing
    reads, the shallow ones first. The order follows from dependences, kinds of
    operations and extents, so that a shuffle of independent statements has the
    same plan. The plan's own order is chosen later (`shd-optimize`), and
    `shd-text-order` puts the operations back.

    Safe at any time before `shd-optimize`, but in a pipeline, whose stages are
    told apart by the order of the text: there it does nothing.
  }];
}

def ShdTextOrder : Pass<"shd-text-order", "::shardc::shd::ProgramOp"> {
  let summary = "Puts operations back into the order of the text";
  let description = [{
    Undoes `shd-canonical-order`. The order that the plan runs in stays, from now
    on in the numbers of the text; but where it is as fast in the order of the
    text and takes at most a tenth more memory, it runs in that.
  }];
  let options = [
    Option<"memoryLimit", "memory-limit", "int64_t", "-1",
           "Bytes per device; the machine's HBM capacity if negative">,
  ];
}

def ShdOptimize : Pass<"shd-optimize", "::shardc::shd::ProgramOp"> {
  let summary = "Chooses the sharding plan of least time that fits in memory";
  let description = [{
    Builds the cost function network of the program (strategies of operations,
    layouts of values, copies), solves it, and writes the plan as closed pins
    and copies. Needs `shd-fusion-groups`. Emits an error where annotations
    contradict each other.

    With another `objective` than `upper`, the network is solved again with
    other weights of device time, of each physical network and of chains of work
    that waits for each other: each solution is a plan to try, and each bound
    one of the objective.

    With `fixed`, layouts of named values are taken as they are pinned and only
    the way in which each operation gets from its operands to its result is
    chosen; memory is not considered, and no copies are made but those that
    `shd.layouts` names.

    With `price-memory`, a plan that took a short search records its time with
    1 GiB more on each device, where that is less.
  }];
  let options = [
    Option<"fixed", "fixed", "bool", "false",
           "Layouts are decided; only choose how operations get to them">,
    Option<"objective", "objective", "::shardc::Objective",
           "::shardc::Objective::Upper", "The time to minimise",
           [{::llvm::cl::values(
               clEnumValN(::shardc::Objective::Upper, "upper",
                          "nothing overlaps"),
               clEnumValN(::shardc::Objective::Scheduled, "scheduled",
                          "as scheduled"),
               clEnumValN(::shardc::Objective::Lower, "lower",
                          "perfect overlap"))}]>,
    Option<"memoryLimit", "memory-limit", "int64_t", "-1",
           "Bytes per device; the machine's HBM capacity if negative">,
    Option<"timeLimit", "time-limit", "double", "-1",
           "Seconds; no limit if negative">,
    Option<"priceMemory", "price-memory", "bool", "false",
           "Also find out what a GiB more per device would gain">,
    Option<"effort", "effort", "double", "1",
           "Part of the usual work of the search">,
  ];
}

def ShdInsertCollectives
    : Pass<"shd-insert-collectives", "::shardc::shd::ProgramOp"> {
  let summary = "Makes shardings part of types and every collective explicit";
  let description = [{
    Reads the closed pins that `shd-optimize` wrote, gives every tensor type its
    sharding, and inserts the cheapest sequence of collectives (with its price)
    wherever an operation consumes another layout than its operand has, or a
    value is stored in another than the operation makes. Statistics of
    normalisations over sharded indices become `shd.statistic` and
    `shd.all_reduce`. Pins are gone afterwards.
  }];
}

def ShdAnnotateCost : Pass<"shd-annotate-cost", "::shardc::shd::ProgramOp"> {
  let summary = "Prices every fusion group";
  let description = [{
    Attaches `shd.group_cost` to the first operation of each separately costed
    part of a fusion group: the group as a whole, or leader and rest apart where
    a collective stands between them. Run it after `shd-insert-collectives`.
  }];
}

def ShdShrink : Pass<"shd-shrink", "::shardc::shd::ProgramOp"> {
  let summary = "Makes a planned program small enough to run";
  let description = [{
    Replaces every extent, mesh axis and number of iterations by a small one,
    with the plan's structure unchanged: the same operations and collectives
    over the same axes. What axes divide stays divided, products and sums of
    extents stay so, and different extents stay different and in their order
    where these allow it (docs/Verification.md). Prices are dropped: they are
    those of the large program.

    Needs a verified program, after `shd-insert-collectives`. The result computes
    something else: this is for tests, and what `shardc --verify` does first.
  }];
  let options = [
    Option<"maxAxis", "max-axis", "int64_t", "2",
           "Devices along an axis, at least 2">,
  ];
}

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_TD
