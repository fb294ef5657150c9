# ct5p-hightpu-4t (v5p), topology 2x2x4: 16 chips at 4 a machine are 4 machines.
# This needs GKE 1.33.0-gke.1712000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud container node-pools create tpu-flex \
    --cluster=CLUSTER \
    --location=us-east5 \
    --node-locations=us-east5-a \
    --machine-type=ct5p-hightpu-4t \
    --tpu-topology=2x2x4 \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=4 \
    --no-enable-autorepair

# 2. Check it.
gcloud container node-pools describe tpu-flex --cluster=CLUSTER --location=us-east5 --format=json |
    pitstop flex check --topology 2x2x4 -
