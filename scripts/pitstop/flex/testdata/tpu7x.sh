# tpu7x-standard-4t (TPU7x), topology 4x4x4: 64 chips at 4 a machine are 16 machines.
# This needs GKE 1.34.0-gke.2201000 or later. Google takes a flex-start machine away after 7 days at most.

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

# 3. The training. When a machine is lost, this Job stays Failed, and a person has to make it again.
# With --jobset, JobSet begins again by itself.
kubectl apply -f - <<'EOF'
apiVersion: v1
kind: Service
metadata:
  name: training-workers
spec:
  clusterIP: None
  selector:
    batch.kubernetes.io/job-name: training
---
apiVersion: batch/v1
kind: Job
metadata:
  name: training
spec:
  completionMode: Indexed
  parallelism: 16
  completions: 16
  backoffLimit: 0
  podReplacementPolicy: Failed
  template:
    spec:
      subdomain: training-workers
      restartPolicy: Never
      terminationGracePeriodSeconds: 300
      nodeSelector:
        cloud.google.com/gke-flex-start: "true"
        cloud.google.com/gke-tpu-accelerator: tpu7x
        cloud.google.com/gke-tpu-topology: 4x4x4
      containers:
        - name: training
          image: IMAGE
          securityContext:
            privileged: true
          ports:
            - containerPort: 8471
            - containerPort: 8431
          env:
            - name: PITCREW_CLUSTER
              value: us-central1-c/CLUSTER
            - name: PITCREW_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: PITCREW_POD
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: PITCREW_JOB
              valueFrom:
                fieldRef:
                  fieldPath: metadata.labels['batch.kubernetes.io/job-name']
            - name: PITCREW_JOB_UID
              valueFrom:
                fieldRef:
                  fieldPath: metadata.labels['batch.kubernetes.io/controller-uid']
          command: [pitcrew, run, '--checkpoint-dir=gs://BUCKET/run', --, python3, train.py]
          resources:
            requests:
              google.com/tpu: 4
            limits:
              google.com/tpu: 4
EOF

# 4. Watch it. Pods wait as Pending until Google has the machines.
kubectl get job/training
kubectl get pods --selector=batch.kubernetes.io/job-name=training --output=wide
kubectl get nodes --selector=cloud.google.com/gke-flex-start=true --label-columns=cloud.google.com/gke-tpu-topology

# 5. Clean up.
kubectl delete job/training service/training-workers
gcloud container node-pools delete tpu-flex --cluster=CLUSTER --location=us-central1-c
gcloud compute resource-policies delete tpu-flex-4x4x4 --region=us-central1
