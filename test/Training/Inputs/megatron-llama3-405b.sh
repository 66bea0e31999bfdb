# LLaMA-3.1 405B on 1024 GPUs (NVIDIA/Megatron-LM, its guide to parallelism): the
# degrees are the guide's. The rest is left to what fits.
--tensor-model-parallel-size 8
--sequence-parallel
--context-parallel-size 2
--pipeline-model-parallel-size 8
--pipeline-model-parallel-layout Et*15|(t*16|)*6,t*15L
--use-distributed-optimizer
--micro-batch-size 1
--recompute-granularity full
