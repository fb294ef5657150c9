# tpu7x-standard-4t (TPU7x), topology 4x4x4: 64 chips at 4 a machine are 16 machines.
# This needs GKE 1.34.0-gke.2201000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud compute resource-policies create workload-policy tpu-flex-4x4x4 \
    --region=us-central1 \
    --type=HIGH_THROUGHPUT \
    --accelerator-topology=4x4x4
gcloud container node-pools create tpu-flex \
    --cluster=CLUSTER \
    --location=us-central1-c \
    --node-locations=us-central1-c \
    --machine-type=tpu7x-standard-4t \
    --placement-policy=tpu-flex-4x4x4 \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=16 \
    --no-enable-autorepair

# 2. Check it.
gcloud container node-pools describe tpu-flex --cluster=CLUSTER --location=us-central1-c --format=json |
    pitstop flex check --topology 4x4x4 -
