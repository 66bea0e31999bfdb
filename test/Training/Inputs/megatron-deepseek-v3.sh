# DeepSeek-V3 on 2048 GPUs (its report, section 3.2) as Megatron-LM would be told: 16
# stages, experts over 64, ZeRO-1. The rest is left to what fits.
--pipeline-model-parallel-size 16
--pipeline-model-parallel-layout Et*3|(t*4|)*14,t*2L
--expert-model-parallel-size 64
--use-distributed-optimizer
--micro-batch-size 1
--recompute-granularity full
